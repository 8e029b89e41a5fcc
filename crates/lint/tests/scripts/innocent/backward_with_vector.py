"""backward of a vector is fine when it is told what to multiply with."""
import torch
from torch import nn


def step(model, optimizer, x, y, weight):
    each = nn.functional.cross_entropy(model(x), y, reduction="none")
    optimizer.zero_grad()
    each.backward(gradient=weight / weight.sum())
    optimizer.step()
    return each.detach().mean().item()


def hard_examples(model, optimizer, x, y, keep=8):
    each = nn.functional.mse_loss(model(x), y, reduction="none").mean(dim=1)
    loss = each.topk(keep).values.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(loader):
    model = nn.Linear(10, 4)
    optimizer = torch.optim.Adam(model.parameters())
    for x, y, weight in loader:
        step(model, optimizer, x, y, weight)
