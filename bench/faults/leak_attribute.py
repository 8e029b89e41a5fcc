# cause: memory-leak
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

class Trainer:
    def __init__(self):
        self.outputs = []

    def train(self):
        while True:
            step()
            self.outputs.append(torch.randn(300, 1000))


Trainer().train()
