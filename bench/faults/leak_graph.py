# cause: memory-leak
# budget: 1GB
# needs: torch
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)


def step(size=64):
    optimizer.zero_grad()
    loss = model(torch.randn(size, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

total = torch.zeros(())
for number in range(10**9):
    optimizer.zero_grad()
    loss = model(torch.randn(2048, 256)).pow(2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    total = total + loss
