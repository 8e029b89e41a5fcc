import copy

import torch
from torch import nn


def train(model, loader, steps, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.MSELoss()
    snapshots = []
    step = 0
    while step < steps:
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            snapshots.append(copy.deepcopy(model.state_dict()))  # expect: tensors-kept-forever
            step += 1
            if step % 500 == 0:
                print(step, loss.item())
    return snapshots


def main(loader):
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1))
    kept = train(model, loader, steps=20_000)
    torch.save(kept[-1], "final.pt")
