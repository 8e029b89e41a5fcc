import torch
from torch import nn


def train_epoch(model, loader, optimizer, criterion, device):
    """Waits for the card once an epoch, not once a step."""
    model.train()
    losses = []
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


def main(model, loader, device="cuda"):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        print(epoch, train_epoch(model, loader, optimizer, nn.CrossEntropyLoss(), device))
