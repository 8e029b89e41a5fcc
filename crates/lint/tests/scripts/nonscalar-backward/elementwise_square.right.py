import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Surrogate:
    def __init__(self, inputs, outputs, width=64):
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, outputs))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def residual(self, x, y):
        return (self.net(x) - y).pow(2)

    def fit(self, x, y, epochs=10, batch_size=50):
        loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
        for epoch in range(epochs):
            for xb, yb in loader:
                self.opt.zero_grad()
                loss = self.residual(xb, yb).mean()
                loss.backward()
                self.opt.step()
        return self


if __name__ == "__main__":
    points = torch.rand(1000, 3)
    values = torch.cat([points.sin(), points.cos()], dim=1)
    Surrogate(3, 6).fit(points, values)
