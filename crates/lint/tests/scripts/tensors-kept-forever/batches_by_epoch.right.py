import torch
from torch import nn


class Recorder:
    """Remembers the last batches it has seen so that a crash can be replayed."""

    def __init__(self):
        self.batches = []

    def __call__(self, x, y):
        if len(self.batches) == 20:
            self.batches.pop(0)
        self.batches.append((x.clone(), y.clone()))


def train(model, loader, epochs, device):
    recorder = Recorder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    model.to(device).train()
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            recorder(x, y)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), len(recorder.batches))
    return model
