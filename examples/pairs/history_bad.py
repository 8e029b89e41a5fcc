"""PyTorch: every batch of outputs is kept, so memory grows with every step.

    antifreeze run --budget 1GB -- python history_bad.py
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []
for step in range(2000):
    inputs = torch.randn(1000, 64)
    outputs = model(inputs)
    loss = outputs.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append((step, torch.randn(600, 600) + outputs.detach().mean()))
print("done")
