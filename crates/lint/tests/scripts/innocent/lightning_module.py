import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn


class Lit(pl.LightningModule):
    """The framework steps, clears gradients and turns them off for validation."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 2))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        return logits.argmax(dim=1)

    def predict_step(self, batch, batch_idx):
        return self(batch[0]).softmax(dim=1)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
