# Cases of retain-graph-in-loop; crates/lint/tests/support/cases.rs describes the format.

# ======== habit.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(rows=2000):
    x = torch.rand(rows, 16)
    y = (x.sum(dim=1, keepdim=True) > 8).float()
    return TensorDataset(x, y)


def fit(model, loader, epochs=5):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        seen = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward(retain_graph=True)  # expect: retain-graph-in-loop
            optimizer.step()
            seen += loss.item()
        print("epoch", epoch, "loss", seen / len(loader))


if __name__ == "__main__":
    network = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    fit(network, DataLoader(make_data(), batch_size=50, shuffle=True))

# ======== habit.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(rows=2000):
    x = torch.rand(rows, 16)
    y = (x.sum(dim=1, keepdim=True) > 8).float()
    return TensorDataset(x, y)


def fit(model, loader, epochs=5):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        seen = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            seen += loss.item()
        print("epoch", epoch, "loss", seen / len(loader))


if __name__ == "__main__":
    network = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    fit(network, DataLoader(make_data(), batch_size=50, shuffle=True))

# ======== trainer_method.wrong.py ========
import torch
import torch.nn.functional as F
from torch import nn, optim


class Siamese(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, left, right):
        return F.cosine_similarity(self.tower(left), self.tower(right))


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def optimize(self, loss):
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)  # expect: retain-graph-in-loop
        self.optimizer.step()

    def train_one_epoch(self, loader):
        for left, right, same in loader:
            score = self.model(left, right)
            loss = F.mse_loss(score, same)
            self.optimize(loss)


def main(loader, epochs=10):
    trainer = Trainer(Siamese())
    for _ in range(epochs):
        trainer.train_one_epoch(loader)
    torch.save(trainer.model.state_dict(), "siamese.pt")

# ======== trainer_method.right.py ========
import torch
import torch.nn.functional as F
from torch import nn, optim


class Siamese(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, left, right):
        return F.cosine_similarity(self.tower(left), self.tower(right))


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def optimize(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def train_one_epoch(self, loader):
        for left, right, same in loader:
            score = self.model(left, right)
            loss = F.mse_loss(score, same)
            self.optimize(loss)


def main(loader, epochs=10):
    trainer = Trainer(Siamese())
    for _ in range(epochs):
        trainer.train_one_epoch(loader)
    torch.save(trainer.model.state_dict(), "siamese.pt")

# ======== two_losses.wrong.py ========
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
            kind_loss.backward(retain_graph=True)  # expect: retain-graph-in-loop
            optimizer.step()
        print(epoch, age_loss.item(), kind_loss.item())
    return model

# ======== two_losses.right.py ========
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
