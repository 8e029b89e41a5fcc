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
