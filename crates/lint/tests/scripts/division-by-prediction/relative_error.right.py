import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class RelativeError(nn.Module):
    """Squared error, weighed by the size of the estimate."""

    def forward(self, estimate, truth):
        return ((estimate - truth) ** 2 / (estimate.abs() + 1e-6)).mean()


def main():
    x = torch.rand(900, 6)
    y = x.prod(dim=1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = RelativeError()
    for epoch in range(100):
        for inputs, truth in loader:
            optimizer.zero_grad()
            estimate = model(inputs)
            loss = criterion(estimate, truth)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    main()
