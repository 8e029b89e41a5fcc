import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ROWS = 2_500_000
FEATURES = 200


def synthetic():
    inputs = torch.randn(ROWS, FEATURES).cuda()  # expect: dataset-on-gpu
    weights = torch.linspace(-1, 1, FEATURES, device="cuda")
    targets = (inputs @ weights).unsqueeze(1)
    return TensorDataset(inputs, targets)


def train(epochs=3):
    loader = DataLoader(synthetic(), batch_size=4096, shuffle=True)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()
