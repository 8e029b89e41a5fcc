import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn


class LitClassifier(pl.LightningModule):
    def __init__(self, inputs=40, classes=7, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(inputs, 80), nn.ReLU(), nn.Linear(80, classes))
        self.train_losses = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.train_losses.append(loss)  # expect: graph-in-container
        self.log("train_loss", loss)
        return loss

    def on_train_epoch_end(self):
        self.log("epoch_loss", torch.stack(self.train_losses).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main(loader):
    trainer = pl.Trainer(max_epochs=20, accelerator="auto")
    trainer.fit(LitClassifier(), loader)
