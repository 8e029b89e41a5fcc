"""Sums the penalty as well as the loss; only the loss was turned into a number."""
import torch
from torch import nn


def l2_of(model):
    return sum((p ** 2).sum() for p in model.parameters())


def train_epoch(model, loader, optimizer, criterion, decay=1e-4):
    total_loss, total_penalty = 0.0, 0.0
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        penalty = decay * l2_of(model)
        (loss + penalty).backward()
        optimizer.step()
        total_loss += loss.item()
        total_penalty += penalty  # expect: graph-in-accumulator
    return total_loss / (i + 1), total_penalty / (i + 1)


def main(loader, epochs=15):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        loss, penalty = train_epoch(model, loader, optimizer, criterion)
        print(f"{epoch}: loss {loss:.4f} penalty {penalty:.4f}")
    return model
