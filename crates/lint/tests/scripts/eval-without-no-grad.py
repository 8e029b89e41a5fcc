# Cases of eval-without-no-grad; crates/lint/tests/support/cases.rs describes the format.

# ======== agent_test.wrong.py ========
import random
from collections import deque

import torch
from torch import nn


class DQN:
    def __init__(self, observations, actions, device):
        self.device = device
        self.online = self.build(observations, actions).to(device)
        self.memory = deque(maxlen=100_000)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-4)

    @staticmethod
    def build(observations, actions):
        return nn.Sequential(nn.Linear(observations, 64), nn.ReLU(), nn.Linear(64, actions))

    def learn(self, batch_size=64, gamma=0.99):
        sample = random.sample(self.memory, batch_size)
        state, action, reward, following, done = (torch.stack(part).to(self.device) for part in zip(*sample))
        value = self.online(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            future = self.online(following).max(dim=1).values
        loss = nn.functional.smooth_l1_loss(value, reward + gamma * future * (1 - done))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def test(self, env, episodes=10):  # or: eval-without-no-grad
        self.online.eval()
        returns = []
        for _ in range(episodes):
            state, _ = env.reset()
            total, done = 0.0, False
            while not done:
                values = self.online(torch.as_tensor(state, device=self.device))  # expect: eval-without-no-grad
                state, reward, ended, cut, _ = env.step(int(values.argmax()))
                total += reward
                done = ended or cut
            returns.append(total)
        self.online.train()
        return sum(returns) / episodes

# ======== agent_test.right.py ========
import random
from collections import deque

import torch
from torch import nn


class DQN:
    def __init__(self, observations, actions, device):
        self.device = device
        self.online = self.build(observations, actions).to(device)
        self.memory = deque(maxlen=100_000)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-4)

    @staticmethod
    def build(observations, actions):
        return nn.Sequential(nn.Linear(observations, 64), nn.ReLU(), nn.Linear(64, actions))

    def learn(self, batch_size=64, gamma=0.99):
        sample = random.sample(self.memory, batch_size)
        state, action, reward, following, done = (torch.stack(part).to(self.device) for part in zip(*sample))
        value = self.online(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            future = self.online(following).max(dim=1).values
        loss = nn.functional.smooth_l1_loss(value, reward + gamma * future * (1 - done))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def test(self, env, episodes=10):
        self.online.eval()
        returns = []
        for _ in range(episodes):
            state, _ = env.reset()
            total, done = 0.0, False
            while not done:
                with torch.no_grad():
                    values = self.online(torch.as_tensor(state, device=self.device))
                state, reward, ended, cut, _ = env.step(int(values.argmax()))
                total += reward
                done = ended or cut
            returns.append(total)
        self.online.train()
        return sum(returns) / episodes

# ======== inline_validation.wrong.py ========
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms


def main():
    full = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    train_set, val_set = random_split(full, [55_000, 5_000])
    train_loader = DataLoader(train_set, batch_size=200, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)).cuda()
    optimizer = optim.Adadelta(net.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        net.train()
        for image, digit in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(image.cuda()), digit.cuda())
            loss.backward()
            optimizer.step()

        net.eval()
        right = 0
        for image, digit in val_loader:
            guess = net(image.cuda()).argmax(dim=1).cpu()  # expect: eval-without-no-grad
            right += int((guess == digit).sum())
        print("epoch", epoch, "accuracy", right / len(val_set))
    torch.save(net.state_dict(), "digits.pt")


if __name__ == "__main__":
    main()

# ======== inline_validation.right.py ========
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms


def main():
    full = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    train_set, val_set = random_split(full, [55_000, 5_000])
    train_loader = DataLoader(train_set, batch_size=200, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)).cuda()
    optimizer = optim.Adadelta(net.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        net.train()
        for image, digit in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(image.cuda()), digit.cuda())
            loss.backward()
            optimizer.step()

        net.eval()
        right = 0
        with torch.inference_mode():
            for image, digit in val_loader:
                guess = net(image.cuda()).argmax(dim=1).cpu()
                right += int((guess == digit).sum())
        print("epoch", epoch, "accuracy", right / len(val_set))
    torch.save(net.state_dict(), "digits.pt")


if __name__ == "__main__":
    main()

# ======== method_evaluate.wrong.py ========
import torch
import torch.nn.functional as F


class Runner:
    def __init__(self, net, optimizer, loaders, device):
        self.net = net.to(device)
        self.optimizer = optimizer
        self.loaders = loaders
        self.device = device

    def _forward(self, batch):
        x, y = batch["image"].to(self.device), batch["label"].to(self.device)
        return self.net(x), y

    def train_epoch(self):
        self.net.train()
        for batch in self.loaders["train"]:
            self.optimizer.zero_grad()
            logits, y = self._forward(batch)
            F.cross_entropy(logits, y).backward()
            self.optimizer.step()

    def evaluate(self):  # or: eval-without-no-grad
        self.net.eval()
        loss_sum, count = 0.0, 0
        for batch in self.loaders["val"]:
            logits, y = self._forward(batch)  # expect: eval-without-no-grad
            loss_sum += F.cross_entropy(logits, y, reduction="sum").item()
            count += y.size(0)
        return loss_sum / count

    def run(self, epochs):
        best = float("inf")
        for _ in range(epochs):
            self.train_epoch()
            value = self.evaluate()
            if value < best:
                best = value
                torch.save(self.net.state_dict(), "best.pth")
        return best

# ======== method_evaluate.right.py ========
import torch
import torch.nn.functional as F


class Runner:
    def __init__(self, net, optimizer, loaders, device):
        self.net = net.to(device)
        self.optimizer = optimizer
        self.loaders = loaders
        self.device = device

    def _forward(self, batch):
        x, y = batch["image"].to(self.device), batch["label"].to(self.device)
        return self.net(x), y

    def train_epoch(self):
        self.net.train()
        for batch in self.loaders["train"]:
            self.optimizer.zero_grad()
            logits, y = self._forward(batch)
            F.cross_entropy(logits, y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        loss_sum, count = 0.0, 0
        for batch in self.loaders["val"]:
            logits, y = self._forward(batch)
            loss_sum += F.cross_entropy(logits, y, reduction="sum").item()
            count += y.size(0)
        return loss_sum / count

    def run(self, epochs):
        best = float("inf")
        for _ in range(epochs):
            self.train_epoch()
            value = self.evaluate()
            if value < best:
                best = value
                torch.save(self.net.state_dict(), "best.pth")
        return best

# ======== perplexity_nested.wrong.py ========
import math

import torch
from torch import nn


def fit(model, train_batches, valid_batches, device, epochs=5):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=0)

    def loss_of(ids):
        ids = ids.to(device)
        logits = model(ids[:, :-1])
        return criterion(logits.flatten(0, 1), ids[:, 1:].flatten())

    def perplexity():  # or: eval-without-no-grad
        model.eval()
        values = []
        for ids in valid_batches:
            values.append(loss_of(ids).item())  # expect: eval-without-no-grad
        return math.exp(sum(values) / len(values))

    for epoch in range(epochs):
        model.train()
        for ids in train_batches:
            optimizer.zero_grad()
            loss_of(ids).backward()
            optimizer.step()
        current = perplexity()
        scheduler.step(current)
        print(epoch, current)

# ======== perplexity_nested.right.py ========
import math

import torch
from torch import nn


def fit(model, train_batches, valid_batches, device, epochs=5):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=0)

    def loss_of(ids):
        ids = ids.to(device)
        logits = model(ids[:, :-1])
        return criterion(logits.flatten(0, 1), ids[:, 1:].flatten())

    @torch.no_grad()
    def perplexity():
        model.eval()
        values = []
        for ids in valid_batches:
            values.append(loss_of(ids).item())
        return math.exp(sum(values) / len(values))

    for epoch in range(epochs):
        model.train()
        for ids in train_batches:
            optimizer.zero_grad()
            loss_of(ids).backward()
            optimizer.step()
        current = perplexity()
        scheduler.step(current)
        print(epoch, current)

# ======== predict_folder.wrong.py ========
import csv

import torch
from torch.utils.data import DataLoader
from torchvision import models, transforms
from torchvision.datasets import ImageFolder


def load(checkpoint, classes):
    model = models.efficientnet_b0(num_classes=classes)
    model.load_state_dict(torch.load(checkpoint, map_location="cpu"))
    return model.cuda().eval()


def predict(model, folder):
    transform = transforms.Compose([
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
    ])
    loader = DataLoader(ImageFolder(folder, transform), batch_size=64)
    rows = []
    for images, _ in loader:
        scores = torch.softmax(model(images.cuda()), dim=1)  # expect: eval-without-no-grad
        confidence, kind = scores.max(dim=1)
        rows.extend(zip(kind.tolist(), confidence.tolist()))
    return rows


def main():
    model = load("efficientnet.pt", classes=40)
    with open("predictions.csv", "w", newline="") as out:
        csv.writer(out).writerows(predict(model, "holdout"))


if __name__ == "__main__":
    main()

# ======== predict_folder.right.py ========
import csv

import torch
from torch.utils.data import DataLoader
from torchvision import models, transforms
from torchvision.datasets import ImageFolder


def load(checkpoint, classes):
    model = models.efficientnet_b0(num_classes=classes)
    model.load_state_dict(torch.load(checkpoint, map_location="cpu"))
    return model.cuda().eval()


@torch.inference_mode()
def predict(model, folder):
    transform = transforms.Compose([
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
    ])
    loader = DataLoader(ImageFolder(folder, transform), batch_size=64)
    rows = []
    for images, _ in loader:
        scores = torch.softmax(model(images.cuda()), dim=1)
        confidence, kind = scores.max(dim=1)
        rows.extend(zip(kind.tolist(), confidence.tolist()))
    return rows


def main():
    model = load("efficientnet.pt", classes=40)
    with open("predictions.csv", "w", newline="") as out:
        csv.writer(out).writerows(predict(model, "holdout"))


if __name__ == "__main__":
    main()

# ======== research_repo.wrong.py ========
"""Graph classification, with early stopping on the validation accuracy."""
import argparse
import json
import random
from dataclasses import dataclass, field
from typing import List

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Log:
    losses: List[float] = field(default_factory=list)
    accuracies: List[float] = field(default_factory=list)


class RandomGraphs(Dataset):
    def __init__(self, count, nodes=12, seed=0):
        self.count, self.nodes, self.seed = count, nodes, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = random.Random(self.seed * 1_000_003 + index)
        dense = rng.random() < 0.5
        p = 0.4 if dense else 0.15
        adjacency = torch.tensor([[float(rng.random() < p) for _ in range(self.nodes)] for _ in range(self.nodes)])
        return torch.maximum(adjacency, adjacency.t()), torch.tensor(int(dense))


class GraphNet(nn.Module):
    def __init__(self, nodes, width=32):
        super().__init__()
        self.first = nn.Linear(nodes, width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, adjacency):
        x = F.relu(self.first(adjacency))
        x = F.relu(self.second(adjacency @ x))
        return self.head(x.mean(dim=1))


class Experiment:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = GraphNet(12).to(self.device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=args.lr)
        self.train_loader = DataLoader(RandomGraphs(2000), batch_size=50, shuffle=True)
        self.val_loader = DataLoader(RandomGraphs(500, seed=1), batch_size=50)
        self.log = Log()

    def train_one_epoch(self):
        self.net.train()
        total = 0.0
        for adjacency, label in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.net(adjacency.to(self.device)), label.to(self.device))
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.log.losses.append(total / len(self.train_loader))

    def accuracy(self):  # or: eval-without-no-grad
        self.net.eval()
        right = 0
        for adjacency, label in self.val_loader:
            guess = self.net(adjacency.to(self.device)).argmax(dim=1)  # expect: eval-without-no-grad
            right += (guess.cpu() == label).sum().item()
        return right / len(self.val_loader.dataset)

    def run(self):
        best, waited = 0.0, 0
        while waited < self.args.patience:
            self.train_one_epoch()
            value = self.accuracy()
            self.log.accuracies.append(value)
            best, waited = (value, 0) if value > best else (best, waited + 1)
        return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--patience", type=int, default=5)
    print(json.dumps({"best": Experiment(parser.parse_args()).run()}))

# ======== research_repo.right.py ========
"""Graph classification, with early stopping on the validation accuracy."""
import argparse
import json
import random
from dataclasses import dataclass, field
from typing import List

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Log:
    losses: List[float] = field(default_factory=list)
    accuracies: List[float] = field(default_factory=list)


class RandomGraphs(Dataset):
    def __init__(self, count, nodes=12, seed=0):
        self.count, self.nodes, self.seed = count, nodes, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = random.Random(self.seed * 1_000_003 + index)
        dense = rng.random() < 0.5
        p = 0.4 if dense else 0.15
        adjacency = torch.tensor([[float(rng.random() < p) for _ in range(self.nodes)] for _ in range(self.nodes)])
        return torch.maximum(adjacency, adjacency.t()), torch.tensor(int(dense))


class GraphNet(nn.Module):
    def __init__(self, nodes, width=32):
        super().__init__()
        self.first = nn.Linear(nodes, width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, adjacency):
        x = F.relu(self.first(adjacency))
        x = F.relu(self.second(adjacency @ x))
        return self.head(x.mean(dim=1))


class Experiment:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = GraphNet(12).to(self.device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=args.lr)
        self.train_loader = DataLoader(RandomGraphs(2000), batch_size=50, shuffle=True)
        self.val_loader = DataLoader(RandomGraphs(500, seed=1), batch_size=50)
        self.log = Log()

    def train_one_epoch(self):
        self.net.train()
        total = 0.0
        for adjacency, label in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.net(adjacency.to(self.device)), label.to(self.device))
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.log.losses.append(total / len(self.train_loader))

    def accuracy(self):
        self.net.eval()
        right = 0
        with torch.no_grad():
            for adjacency, label in self.val_loader:
                guess = self.net(adjacency.to(self.device)).argmax(dim=1)
                right += (guess.cpu() == label).sum().item()
        return right / len(self.val_loader.dataset)

    def run(self):
        best, waited = 0.0, 0
        while waited < self.args.patience:
            self.train_one_epoch()
            value = self.accuracy()
            self.log.accuracies.append(value)
            best, waited = (value, 0) if value > best else (best, waited + 1)
        return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--patience", type=int, default=5)
    print(json.dumps({"best": Experiment(parser.parse_args()).run()}))

# ======== validate_called_from_train.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader


def validate(model, loader, device):
    model.eval()
    hits, total = 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)  # expect: eval-without-no-grad
        hits += (logits.argmax(dim=1) == labels).sum().item()
        total += labels.numel()
    return hits / max(total, 1)


def train(model, train_set, val_set, epochs=30):
    device = torch.device("cuda")
    model.to(device)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    best = 0.0
    for epoch in range(epochs):
        model.train()
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        scheduler.step()
        accuracy = validate(model, val_loader, device)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), "best.pt")
    return best

# ======== validate_called_from_train.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader


def validate(model, loader, device):
    model.eval()
    hits, total = 0, 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            hits += (logits.argmax(dim=1) == labels).sum().item()
            total += labels.numel()
    return hits / max(total, 1)


def train(model, train_set, val_set, epochs=30):
    device = torch.device("cuda")
    model.to(device)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    best = 0.0
    for epoch in range(epochs):
        model.train()
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        scheduler.step()
        accuracy = validate(model, val_loader, device)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), "best.pt")
    return best
