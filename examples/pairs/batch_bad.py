"""PyTorch: the batch is the whole dataset, and its activations do not fit.

    antifreeze run --budget 1200MB -- python batch_bad.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.randn(200_000, 64), torch.randn(200_000, 1))
loader = DataLoader(dataset, batch_size=200_000)
model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
for inputs, targets in loader:
    loss = (model(inputs) - targets).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
