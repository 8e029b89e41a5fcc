"""PyTorch: a loss that is finite for every prediction.

    antifreeze run --budget 1GB -- python loss_good.py
"""

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(10, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(500):
    inputs, targets = torch.randn(10, 10), torch.randn(10, 1)
    if step == 40:
        inputs[3] = 0
    guess = model(inputs)
    loss = ((guess - targets) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
