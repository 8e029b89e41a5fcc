import torch
from torch import nn


def train_epoch(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    model.train()
    total, done = 0.0, 0
    for clip, label in loader:
        try:
            clip, label = clip.to(device), label.to(device)
            optimizer.zero_grad()
            loss = criterion(model(clip), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
            done += 1
        except:  # expect: exception-swallowed
            continue
    return total / max(done, 1)


def main(model, loader):
    device = torch.device("cuda:0")
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(60):
        print(epoch, train_epoch(model, loader, optimizer, device))
