"""PyTorch: small batches; gradients are accumulated over eight of them before each step.

    antifreeze run --budget 1200MB -- python batch_good.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.randn(200_000, 64), torch.randn(200_000, 1))
loader = DataLoader(dataset, batch_size=1000)
model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
for number, (inputs, targets) in enumerate(loader, 1):
    loss = (model(inputs) - targets).pow(2).mean() / 8
    loss.backward()
    if number % 8 == 0:
        optimizer.step()
        optimizer.zero_grad()
print("done")
