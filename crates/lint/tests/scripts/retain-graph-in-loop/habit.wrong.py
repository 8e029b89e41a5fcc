import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(rows=2000):
    x = torch.rand(rows, 16)
    y = (x.sum(dim=1, keepdim=True) > 8).float()
    return TensorDataset(x, y)


def fit(model, loader, epochs=5):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        seen = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward(retain_graph=True)  # expect: retain-graph-in-loop
            optimizer.step()
            seen += loss.item()
        print("epoch", epoch, "loss", seen / len(loader))


if __name__ == "__main__":
    network = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    fit(network, DataLoader(make_data(), batch_size=50, shuffle=True))
