import torch
from torch import nn


def run_step(model, criterion, optimizer, images, labels):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_epoch(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        too_large = False
        try:
            total += run_step(model, criterion, optimizer, images, labels)
        except torch.cuda.OutOfMemoryError:
            too_large = True
        if too_large:
            torch.cuda.empty_cache()
            half = images.size(0) // 2
            total += run_step(model, criterion, optimizer, images[:half], labels[:half])
    return total / len(loader)


def main(model, loader, device, epochs=10):
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        mean = train_epoch(model, loader, optimizer, device)
        print(epoch, mean)
