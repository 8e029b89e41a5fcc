# cause: dataset-in-memory
# budget: 900MB
# needs: torch
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(size=64):
    optimizer.zero_grad()
    loss = model(torch.randn(size, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

import time

samples = []
for number in range(10**6):
    samples.append(torch.randn(300, 1000))
    time.sleep(0.01)
step()
