import torch
import torch.nn as nn


class AverageMeter:
    def __init__(self):
        self.values = []
        self.weights = []

    def update(self, value, n=1):
        self.values.append(value)
        self.weights.append(n)

    @property
    def mean(self):
        return sum(v * w for v, w in zip(self.values, self.weights)) / sum(self.weights)


def train_epoch(model, loader, criterion, optimizer, device):
    meter = AverageMeter()
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), images.size(0))
    return float(meter.mean)


def main(model, loader, device="cpu", epochs=30):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5e-4)
    for epoch in range(epochs):
        print(epoch, train_epoch(model, loader, criterion, optimizer, device))
