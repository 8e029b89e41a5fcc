import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self, inputs, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(64, size) for name, size in tasks.items()})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def train(loader, tasks, weights, epochs=10):
    model = MultiTask(100, tasks)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        running = 0.0
        for x, labels in loader:
            outputs = model(x)
            total = 0
            for name, logits in outputs.items():
                loss = criterion(logits, labels[name])
                total = total + weights[name] * loss
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            running += total.item()
        print(epoch, running / len(loader))
