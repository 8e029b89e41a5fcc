"""Two heads, two losses, two backward passes; only the first has to keep the graph."""
import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(100, 64), nn.ReLU())
        self.age = nn.Linear(64, 1)
        self.kind = nn.Linear(64, 5)

    def forward(self, x):
        h = self.trunk(x)
        return self.age(h).squeeze(1), self.kind(h)


def train(loader, epochs=10):
    model = TwoHeads()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for x, age, kind in loader:
            optimizer.zero_grad()
            age_out, kind_out = model(x)
            age_loss = nn.functional.mse_loss(age_out, age)
            kind_loss = nn.functional.cross_entropy(kind_out, kind)
            age_loss.backward(retain_graph=True)
            kind_loss.backward()
            optimizer.step()
        print(epoch, age_loss.item(), kind_loss.item())
    return model
