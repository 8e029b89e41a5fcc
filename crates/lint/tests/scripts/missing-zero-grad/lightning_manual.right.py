import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn


class Pair(pl.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Linear(100, width)
        self.decoder = nn.Linear(width, 100)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        x, _ = batch
        rebuilt = self.decoder(torch.relu(self.encoder(x)))
        loss = F.mse_loss(rebuilt, x)
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        self.log("loss", loss, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main(loader):
    trainer = pl.Trainer(max_epochs=5)
    trainer.fit(Pair(), loader)
