"""The data stays in memory; the card gets a piece at a time."""
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.fc = nn.Linear(columns, 1)

    def forward(self, x):
        return self.fc(x)


def main():
    rows, columns = 12_000_000, 10
    samples = torch.randn(rows, columns)
    net = Net(columns).cuda()
    optimizer = optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for epoch in range(50):
        for part in samples.split(8192):
            optimizer.zero_grad()
            out = net(part.cuda())
            loss = criterion(out, torch.zeros_like(out))
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print("epoch", epoch, loss.item())


if __name__ == "__main__":
    main()
