import torch
from torch import nn

EPS = 1e-8


def entropy(probs):
    return -(probs * torch.log(probs + EPS)).sum(dim=-1)


def cross_entropy(probs, target):
    return -torch.log(probs.gather(1, target[:, None]).clamp_min(EPS)).mean()


def from_sigmoid(logits):
    p = torch.sigmoid(logits).clamp(1e-6, 1 - 1e-6)
    return torch.log(p) - torch.log1p(-p)


def train(model, loader, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for x, y in loader:
        probs = nn.functional.softmax(model(x), dim=-1)
        loss = cross_entropy(probs, y) + 0.1 * entropy(probs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
