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

for number in range(20):
    step()
step(2_000_000)
