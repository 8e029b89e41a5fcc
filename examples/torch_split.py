"""PyTorch: a step that does not fit is split into parts, with the same losses.

The activations of one step need about 1 GB. With less memory the plain loop ends with PyTorch's error;
`antifreeze.step` splits the same batch into halves, quarters and so on.

    antifreeze run --budget 900MB -- python torch_split.py --whole
    antifreeze run --budget 900MB -- python torch_split.py
"""

import sys

import antifreeze
import torch
from torch import nn

STEPS, ITEMS = 5, 8192


def main():
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(64, 4096), nn.Tanh(), nn.Sigmoid(), nn.Tanh(), nn.Sigmoid(), nn.Tanh(), nn.Linear(4096, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0002)
    largest = 0

    def forward(batch):
        nonlocal largest
        inputs, targets = batch
        largest = len(inputs)
        return (model(inputs) - targets).pow(2).sum(), len(inputs)

    for step in range(1, STEPS + 1):
        inputs = torch.randn(ITEMS, 64)
        targets = inputs.mean(dim=1, keepdim=True)
        optimizer.zero_grad()
        if "--whole" in sys.argv:
            loss = (model(inputs) - targets).pow(2).mean()
            loss.backward()
        else:
            loss = antifreeze.step(forward, (inputs, targets))
        optimizer.step()
        print(f"step {step}: loss {loss.item():.5f}", flush=True)
    print(f"done, {largest or ITEMS} items at a time")


if __name__ == "__main__":
    main()
