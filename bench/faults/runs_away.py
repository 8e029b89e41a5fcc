# cause: numeric-divergence
# needs: torch
import time

import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(size=64):
    optimizer.zero_grad()
    loss = model(torch.randn(size, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

for group in optimizer.param_groups:
    group["lr"] = 1e-3
weight = torch.nn.Parameter(torch.ones(8))
away = torch.optim.SGD([weight], lr=1.01)
for number in range(600):
    away.zero_grad()
    loss = weight.pow(2).mean() * 8
    loss.backward()
    away.step()
    time.sleep(0.005)
