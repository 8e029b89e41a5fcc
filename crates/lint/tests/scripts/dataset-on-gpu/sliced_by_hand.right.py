import numpy as np
import torch
from torch import nn

device = torch.device("cuda")


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(columns, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def train(epochs=10, batch=2048):
    x = torch.from_numpy(np.load("features.npy"))
    y = torch.from_numpy(np.load("target.npy")).float()
    model = Model(x.shape[1]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        for start in range(0, len(x), batch):
            rows = order[start:start + batch]
            optimizer.zero_grad()
            inputs = x[rows].float().to(device)
            loss = nn.functional.mse_loss(model(inputs), y[rows].to(device))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()
