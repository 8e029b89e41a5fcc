import torch
from torch import nn


def train(model, loader, lr=0.01, epochs=5):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        for x, y in loader:
            for parameter in model.parameters():
                parameter.grad = None
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()


def plain_descent(x, y, steps=100, rate=0.1):
    w = torch.zeros(x.size(1), requires_grad=True)
    for _ in range(steps):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= rate * w.grad
            w.grad.zero_()
    return w.detach()
