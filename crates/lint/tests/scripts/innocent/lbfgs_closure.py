import torch
from torch import nn


def fit(x, y, steps=50):
    model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=20)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for step in range(steps):
        loss = optimizer.step(closure)
        if step % 10 == 0:
            print(step, loss.item())
    return model


if __name__ == "__main__":
    points = torch.linspace(0, 1, 100).unsqueeze(1)
    fit(points, torch.sin(6 * points))
