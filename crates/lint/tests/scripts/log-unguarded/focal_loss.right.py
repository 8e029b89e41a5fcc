import torch
from torch import nn


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, target):
        log_probs = torch.log_softmax(logits, dim=1)
        log_picked = log_probs.gather(1, target.unsqueeze(1)).squeeze(1)
        return (-((1 - log_picked.exp()) ** self.gamma) * log_picked).mean()


def train_epoch(model, loader, optimizer, device):
    criterion = FocalLoss(gamma=1.5)
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)
