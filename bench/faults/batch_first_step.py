# cause: batch-too-large
# budget: 1GB
# needs: torch
"""One step makes many things of ordinary size, and keeps them all until it has gone back."""

import torch
from torch import nn


def main():
    layers = [layer for _ in range(12) for layer in (nn.Linear(512, 512), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(32768, 512)).pow(2).mean().backward()
        optimizer.step()
        print("step", step, flush=True)


main()
