import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SimpleNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, 40)
        self.fc2 = nn.Linear(40, outputs)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs, targets = torch.randn(100_000, 10), torch.randn(100_000, 1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=20, shuffle=True)
    net = SimpleNet(10, 1).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for epoch in range(10):
        for batch_idx, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            if batch_idx % 500 == 0:
                print(f"epoch {epoch} batch {batch_idx} loss {loss.item()}")


if __name__ == "__main__":
    main()
