"""Keeps a moving average of the features and compares each batch with it."""
import torch
import torch.nn.functional as F
from torch import nn


class Centered(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.layer = nn.Linear(inputs, width)

    def forward(self, x, center):
        z = F.normalize(self.layer(x), dim=1)
        center = 0.9 * center + 0.1 * z.mean(dim=0)
        return z, center


def train(loader, inputs=64, width=16, epochs=5):
    model = Centered(inputs, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    center = torch.zeros(width)
    for epoch in range(epochs):
        for i, (x, _) in enumerate(loader):
            optimizer.zero_grad()
            z, center = model(x, center.detach())
            loss = 1 - F.cosine_similarity(z, center.expand_as(z)).mean()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model
