# Cases of sigmoid-then-bce-with-logits; crates/lint/tests/support/cases.rs describes the format.

# ======== functional_inline.wrong.py ========
import torch
import torch.nn.functional as F
from torch import nn


class ClickModel(nn.Module):
    def __init__(self, users, items, width=32):
        super().__init__()
        self.user = nn.Embedding(users, width)
        self.item = nn.Embedding(items, width)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(dim=1) + self.bias


def train(loader, users, items, epochs=3):
    model = ClickModel(users, items)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(epochs):
        total = 0.0
        for user, item, clicked in loader:
            optimizer.zero_grad()
            probability = model(user, item).sigmoid()  # or: sigmoid-then-bce-with-logits
            loss = F.binary_cross_entropy_with_logits(probability, clicked)  # expect: sigmoid-then-bce-with-logits
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))
    return model

# ======== functional_inline.right.py ========
import torch
import torch.nn.functional as F
from torch import nn


class ClickModel(nn.Module):
    def __init__(self, users, items, width=32):
        super().__init__()
        self.user = nn.Embedding(users, width)
        self.item = nn.Embedding(items, width)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(dim=1) + self.bias


def train(loader, users, items, epochs=3):
    model = ClickModel(users, items)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(epochs):
        total = 0.0
        for user, item, clicked in loader:
            optimizer.zero_grad()
            logit = model(user, item)
            loss = F.binary_cross_entropy_with_logits(logit, clicked)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))
    return model

# ======== sequential_layer.wrong.py ========
import torch
import torch.nn as nn


class UNetLite(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.Conv2d(16, 1, 3, padding=1),
            nn.Sigmoid(),  # expect: sigmoid-then-bce-with-logits
        )

    def forward(self, x):
        return self.up(self.down(x))


def train(loader, device, epochs=40):
    net = UNetLite().to(device)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(5.0, device=device))  # or: sigmoid-then-bce-with-logits
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for scan, mask in loader:
            scan, mask = scan.to(device), mask.to(device)
            optimizer.zero_grad()
            loss = criterion(net(scan), mask)  # or: sigmoid-then-bce-with-logits
            loss.backward()
            optimizer.step()
        torch.save(net.state_dict(), "unet.pt")

# ======== sequential_layer.right.py ========
import torch
import torch.nn as nn


class UNetLite(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.Conv2d(16, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.up(self.down(x))


def train(loader, device, epochs=40):
    net = UNetLite().to(device)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(5.0, device=device))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for scan, mask in loader:
            scan, mask = scan.to(device), mask.to(device)
            optimizer.zero_grad()
            loss = criterion(net(scan), mask)
            loss.backward()
            optimizer.step()
        torch.save(net.state_dict(), "unet.pt")

# ======== sigmoid_head.wrong.py ========
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, inputs, tags):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 512), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(512, tags)

    def forward(self, x):
        return torch.sigmoid(self.head(self.body(x)))  # expect: sigmoid-then-bce-with-logits


class TagTrainer:
    def __init__(self, inputs, tags, lr=1e-3):
        self.model = Tagger(inputs, tags)
        self.loss_fn = nn.BCEWithLogitsLoss()  # or: sigmoid-then-bce-with-logits
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)

    def step(self, x, y):
        self.optim.zero_grad()
        loss = self.loss_fn(self.model(x), y)  # or: sigmoid-then-bce-with-logits
        loss.backward()
        self.optim.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            mean = sum(self.step(x, y) for x, y in loader) / len(loader)
            print(epoch, round(mean, 4))

# ======== sigmoid_head.right.py ========
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, inputs, tags):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 512), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(512, tags)

    def forward(self, x):
        return self.head(self.body(x))


class TagTrainer:
    def __init__(self, inputs, tags, lr=1e-3):
        self.model = Tagger(inputs, tags)
        self.loss_fn = nn.BCEWithLogitsLoss()
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)

    def step(self, x, y):
        self.optim.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.optim.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            mean = sum(self.step(x, y) for x, y in loader) / len(loader)
            print(epoch, round(mean, 4))
