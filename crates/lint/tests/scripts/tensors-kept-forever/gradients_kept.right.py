import torch
from torch import nn


class Probe:
    def __init__(self, model):
        self.model = model
        self.gradients = {name: [] for name, _ in model.named_parameters()}

    def collect(self):
        for name, parameter in self.model.named_parameters():
            self.gradients[name].append(parameter.grad.norm().item())

    def norms(self):
        return {name: sum(v * v for v in g) ** 0.5 for name, g in self.gradients.items()}


def train(model, loader, epochs):
    probe = Probe(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            probe.collect()
            optimizer.step()
        print(epoch, probe.norms())
