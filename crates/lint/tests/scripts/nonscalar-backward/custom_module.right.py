import torch
from torch import nn, optim


class ScaledSquare(nn.Module):
    """Squared error, softer for large targets."""

    def __init__(self, floor=1.0):
        super().__init__()
        self.floor = floor

    def forward(self, prediction, target):
        return ((prediction - target) ** 2 / (target.abs() + self.floor)).mean()


def data(batches, size=10):
    for _ in range(batches):
        x = torch.randn(size, 10)
        yield x, x.sum(dim=1, keepdim=True)


def main():
    model = nn.Linear(10, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    criterion = ScaledSquare()
    for step, (x, y) in enumerate(data(1000)):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print("step", step)


if __name__ == "__main__":
    main()
