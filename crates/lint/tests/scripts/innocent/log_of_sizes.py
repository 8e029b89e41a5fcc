"""Logarithms of things that are never zero: lengths, counts, softplus plus a floor."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class SinusoidalTime(nn.Module):
    def __init__(self, width):
        super().__init__()
        scale = math.log(10_000) / (width // 2 - 1)
        self.register_buffer("freq", torch.exp(-scale * torch.arange(width // 2)))

    def forward(self, t):
        angle = t[:, None] * self.freq[None]
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


class Gaussian(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.mean = nn.Linear(inputs, 1)
        self.spread = nn.Linear(inputs, 1)

    def forward(self, x, y):
        sigma = F.softplus(self.spread(x)) + 1e-3
        z = (y - self.mean(x)) / sigma
        return (0.5 * z.pow(2) + torch.log(sigma)).mean()


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    return loss.item()
