import torch
from torch import nn


def head(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden),  # expect: bias-before-batchnorm
        nn.BatchNorm1d(hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, outputs, bias=False),
    )


class BarlowTwins(nn.Module):
    def __init__(self, backbone, width=512):
        super().__init__()
        self.backbone = backbone
        self.projector = head(width, 2048, 2048)
        self.norm = nn.BatchNorm1d(2048, affine=False)

    def forward(self, a, b):
        za = self.norm(self.projector(self.backbone(a)))
        zb = self.norm(self.projector(self.backbone(b)))
        c = za.t() @ zb / a.size(0)
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        return on + 0.005 * off


def train(model, loader, epochs, device="cuda"):
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for a, b in loader:
            optimizer.zero_grad()
            model(a.to(device), b.to(device)).backward()
            optimizer.step()
