"""A new torch model for each member is no leak: the old ones are kept on purpose, and are few."""
import torch
from torch import nn


def train_member(loader, seed, epochs=5):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return model.eval()


def main(loader, test, members=5):
    models = []
    for seed in range(members):
        models.append(train_member(loader, seed))
    with torch.no_grad():
        votes = torch.stack([model(test) for model in models])
    print(votes.mean(dim=0), votes.std(dim=0))
