import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def update(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.smooth_l1_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return loss.item()


def run(epochs=40):
    x = torch.randn(4000, 12)
    y = x[:, 0] * x[:, 1]
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        losses = [update(model, optimizer, xb, yb) for xb, yb in loader]
        print(epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    run()
