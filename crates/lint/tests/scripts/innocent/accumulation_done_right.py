import torch
from torch import nn


def train_epoch(model, loader, optimizer, device, k=4):
    criterion = nn.CrossEntropyLoss()
    model.train()
    total = 0.0
    last = len(loader)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, start=1):
        loss = criterion(model(x.to(device)), y.to(device))
        (loss / k).backward()
        total += loss.item()
        if i % k == 0 or i == last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return total / last


def main(model, loader, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for epoch in range(3):
        print(epoch, train_epoch(model, loader, optimizer, device))
