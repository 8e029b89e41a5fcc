"""PyTorch: the sum of the losses is a tensor, and keeps the graph of every step.

    antifreeze run --budget 1GB -- python graph_bad.py
"""

import torch
from torch import nn


def train():
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.Adam(model.parameters())
    total = 0
    for step in range(2000):
        loss = model(torch.randn(1000, 256)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        total += loss
    print("done", float(total))


train()
