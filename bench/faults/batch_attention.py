# cause: batch-too-large
# budget: 1GB
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

scores = torch.randn(1, 30_000, 64) @ torch.randn(1, 64, 30_000)
scores.softmax(-1)
