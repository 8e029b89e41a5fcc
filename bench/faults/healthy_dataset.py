# cause: none
# needs: torch
# budget: 2GB
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(size=64):
    optimizer.zero_grad()
    loss = model(torch.randn(size, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

samples = torch.randn(40_000, 256)
for epoch in range(4):
    for start in range(0, len(samples), 128):
        optimizer.zero_grad()
        model(samples[start : start + 128]).pow(2).mean().backward()
        optimizer.step()
