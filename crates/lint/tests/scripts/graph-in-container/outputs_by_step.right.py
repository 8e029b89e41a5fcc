"""Keeps the outputs of the last layer to draw how they move during training."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(30, 60), nn.ReLU(), nn.Linear(60, 2))
        self.head = nn.Linear(2, 3)

    def forward(self, x):
        point = self.body(x)
        return self.head(point), point


def main():
    x, y = torch.randn(3000, 30), torch.randint(0, 3, (3000,))
    loader = DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True)
    net = Projector()
    optimizer = torch.optim.Adam(net.parameters())
    trail = {}
    step = 0
    for epoch in range(30):
        for inputs, labels in loader:
            optimizer.zero_grad()
            logits, point = net(inputs)
            F.cross_entropy(logits, labels).backward()
            optimizer.step()
            if step % 200 == 0:
                trail[step] = point.detach().mean(dim=0).tolist()
            step += 1
    torch.save(trail, "trail.pt")


if __name__ == "__main__":
    main()
