import torch
from torch import nn


def run(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    confident, seen = 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        probs = torch.softmax(logits.detach(), dim=1)
        confident += (probs.max(dim=1).values > 0.9).sum().item()
        seen += y.numel()
    return confident / seen


def main(model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        print(epoch, run(model, loader, optimizer, "cpu"))
