# Cases of graph-in-container; crates/lint/tests/support/cases.rs describes the format.

# ======== activations_probe.wrong.py ========
"""How large do the outputs get while the input drifts? Nothing is trained here."""

import torch
from torch import nn


class Probe:
    def __init__(self, width=1024):
        self.net = nn.Sequential(nn.Linear(256, width), nn.GELU(), nn.Linear(width, 1))
        self.drift = torch.zeros(256)

    def measure(self, rounds):
        levels = []
        for turn in range(rounds):
            self.drift += 0.01 * torch.randn(256)
            answer = self.net(torch.randn(512, 256) + self.drift)
            levels.append(answer.abs().mean())  # expect: graph-in-container
            if turn % 50 == 0:
                print(turn, levels[-1].item())


if __name__ == "__main__":
    Probe().measure(5000)

# ======== activations_probe.right.py ========
"""How large do the outputs get while the input drifts? Nothing is trained here."""

import torch
from torch import nn


class Probe:
    def __init__(self, width=1024):
        self.net = nn.Sequential(nn.Linear(256, width), nn.GELU(), nn.Linear(width, 1))
        self.drift = torch.zeros(256)

    def measure(self, rounds):
        levels = []
        for turn in range(rounds):
            self.drift += 0.01 * torch.randn(256)
            answer = self.net(torch.randn(512, 256) + self.drift)
            levels.append(answer.abs().mean().item())
            if turn % 50 == 0:
                print(turn, levels[-1])


if __name__ == "__main__":
    Probe().measure(5000)

# ======== closure_logger.wrong.py ========
import torch
from torch import nn


def make_logger(path):
    rows = []

    def log(epoch, step, loss):
        rows.append((epoch, step, loss))  # expect: graph-in-container

    def save():
        with open(path, "w") as out:
            for epoch, step, loss in rows:
                out.write(f"{epoch},{step},{float(loss):.6f}\n")

    return log, save


def train(model, loader, device, epochs=3):
    log, save = make_logger("train.csv")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for step, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            log(epoch, step, loss)  # or: graph-in-container
    save()
    return model

# ======== closure_logger.right.py ========
import torch
from torch import nn


def make_logger(path):
    rows = []

    def log(epoch, step, loss):
        rows.append((epoch, step, loss))

    def save():
        with open(path, "w") as out:
            for epoch, step, loss in rows:
                out.write(f"{epoch},{step},{float(loss):.6f}\n")

    return log, save


def train(model, loader, device, epochs=3):
    log, save = make_logger("train.csv")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for step, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            log(epoch, step, loss.item())
    save()
    return model

# ======== history_dict.wrong.py ========
import argparse
from collections import defaultdict

import torch
from torch import nn, optim
from torchvision import datasets, transforms
from tqdm import tqdm


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    return parser.parse_args()


def main():
    args = parse()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(train, batch_size=args.batch_size, shuffle=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    opt = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    history = defaultdict(list)
    for epoch in range(args.epochs):
        for step, (images, labels) in enumerate(tqdm(loader)):
            images, labels = images.to(device), labels.to(device)
            opt.zero_grad()
            loss = criterion(net(images), labels)
            loss.backward()
            opt.step()
            history["loss"].append(loss)  # expect: graph-in-container
            history["lr"].append(opt.param_groups[0]["lr"])
        print(epoch, float(history["loss"][-1]))


if __name__ == "__main__":
    main()

# ======== history_dict.right.py ========
import argparse
from collections import defaultdict

import torch
from torch import nn, optim
from torchvision import datasets, transforms
from tqdm import tqdm


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    return parser.parse_args()


def main():
    args = parse()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(train, batch_size=args.batch_size, shuffle=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    opt = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    history = defaultdict(list)
    for epoch in range(args.epochs):
        for step, (images, labels) in enumerate(tqdm(loader)):
            images, labels = images.to(device), labels.to(device)
            opt.zero_grad()
            loss = criterion(net(images), labels)
            loss.backward()
            opt.step()
            history["loss"].append(loss.item())
            history["lr"].append(opt.param_groups[0]["lr"])
        print(epoch, float(history["loss"][-1]))


if __name__ == "__main__":
    main()

# ======== lightning_outputs.wrong.py ========
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn


class LitClassifier(pl.LightningModule):
    def __init__(self, inputs=40, classes=7, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(inputs, 80), nn.ReLU(), nn.Linear(80, classes))
        self.train_losses = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.train_losses.append(loss)  # expect: graph-in-container
        self.log("train_loss", loss)
        return loss

    def on_train_epoch_end(self):
        self.log("epoch_loss", torch.stack(self.train_losses).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main(loader):
    trainer = pl.Trainer(max_epochs=20, accelerator="auto")
    trainer.fit(LitClassifier(), loader)

# ======== lightning_outputs.right.py ========
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn


class LitClassifier(pl.LightningModule):
    def __init__(self, inputs=40, classes=7, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(inputs, 80), nn.ReLU(), nn.Linear(80, classes))
        self.train_losses = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.train_losses.append(loss.detach())
        self.log("train_loss", loss)
        return loss

    def on_train_epoch_end(self):
        self.log("epoch_loss", torch.stack(self.train_losses).mean())
        self.train_losses.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main(loader):
    trainer = pl.Trainer(max_epochs=20, accelerator="auto")
    trainer.fit(LitClassifier(), loader)

# ======== meter_update.wrong.py ========
import torch
import torch.nn as nn


class AverageMeter:
    def __init__(self):
        self.values = []
        self.weights = []

    def update(self, value, n=1):
        self.values.append(value)
        self.weights.append(n)

    @property
    def mean(self):
        return sum(v * w for v, w in zip(self.values, self.weights)) / sum(self.weights)


def train_epoch(model, loader, criterion, optimizer, device):
    meter = AverageMeter()
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        meter.update(loss, images.size(0))  # expect: graph-in-container
    return float(meter.mean)


def main(model, loader, device="cpu", epochs=30):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5e-4)
    for epoch in range(epochs):
        print(epoch, train_epoch(model, loader, criterion, optimizer, device))

# ======== meter_update.right.py ========
import torch
import torch.nn as nn


class AverageMeter:
    def __init__(self):
        self.values = []
        self.weights = []

    def update(self, value, n=1):
        self.values.append(value)
        self.weights.append(n)

    @property
    def mean(self):
        return sum(v * w for v, w in zip(self.values, self.weights)) / sum(self.weights)


def train_epoch(model, loader, criterion, optimizer, device):
    meter = AverageMeter()
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), images.size(0))
    return float(meter.mean)


def main(model, loader, device="cpu", epochs=30):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5e-4)
    for epoch in range(epochs):
        print(epoch, train_epoch(model, loader, criterion, optimizer, device))

# ======== outputs_by_step.wrong.py ========
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
            trail[step] = point  # expect: graph-in-container
            step += 1
    torch.save({k: v.detach() for k, v in trail.items()}, "trail.pt")


if __name__ == "__main__":
    main()

# ======== outputs_by_step.right.py ========
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

# ======== self_history.wrong.py ========
import dataclasses
from typing import Dict, List

import torch
from torch import nn


@dataclasses.dataclass
class Settings:
    epochs: int = 50
    lr: float = 1e-3
    clip: float = 1.0


class Fitter:
    def __init__(self, model: nn.Module, settings: Settings):
        self.model = model
        self.settings = settings
        self.history: Dict[str, List[float]] = {"train": [], "grad": []}
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
        self.loss_fn = nn.HuberLoss()

    def _step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.history["train"].append(loss)  # expect: graph-in-container
        self.history["grad"].append(norm.item())

    def fit(self, loader):
        for epoch in range(self.settings.epochs):
            self.model.train()
            for x, y in loader:
                self._step(x, y)
        return self.history

# ======== self_history.right.py ========
import dataclasses
from typing import Dict, List

import torch
from torch import nn


@dataclasses.dataclass
class Settings:
    epochs: int = 50
    lr: float = 1e-3
    clip: float = 1.0


class Fitter:
    def __init__(self, model: nn.Module, settings: Settings):
        self.model = model
        self.settings = settings
        self.history: Dict[str, List[float]] = {"train": [], "grad": []}
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
        self.loss_fn = nn.HuberLoss()

    def _step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.history["train"].append(loss.item())
        self.history["grad"].append(norm.item())

    def fit(self, loader):
        for epoch in range(self.settings.epochs):
            self.model.train()
            for x, y in loader:
                self._step(x, y)
        return self.history

# ======== trainer_subclass.wrong.py ========
import torch
from torch import nn
from transformers import Trainer


class LoggingTrainer(Trainer):
    """Keeps the two parts of the loss to draw them after training."""

    def __init__(self, *args, alpha=0.3, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha = alpha
        self.parts = {"task": [], "distance": []}

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs, output_hidden_states=True)
        first, last = outputs.hidden_states[0], outputs.hidden_states[-1]
        distance = nn.functional.mse_loss(last, first)
        self.parts["distance"].append(distance)  # expect: graph-in-container
        self.parts["task"].append(outputs.loss.item())
        loss = outputs.loss + self.alpha * distance
        return (loss, outputs) if return_outputs else loss

    def curves(self):
        return {name: torch.tensor([float(v) for v in values]) for name, values in self.parts.items()}


def main(model, args, train_set):
    trainer = LoggingTrainer(model=model, args=args, train_dataset=train_set)
    trainer.train()
    torch.save(trainer.curves(), "curves.pt")

# ======== trainer_subclass.right.py ========
import torch
from torch import nn
from transformers import Trainer


class LoggingTrainer(Trainer):
    """Keeps the two parts of the loss to draw them after training."""

    def __init__(self, *args, alpha=0.3, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha = alpha
        self.parts = {"task": [], "distance": []}

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs, output_hidden_states=True)
        first, last = outputs.hidden_states[0], outputs.hidden_states[-1]
        distance = nn.functional.mse_loss(last, first)
        self.parts["distance"].append(distance.item())
        self.parts["task"].append(outputs.loss.item())
        loss = outputs.loss + self.alpha * distance
        return (loss, outputs) if return_outputs else loss

    def curves(self):
        return {name: torch.tensor([float(v) for v in values]) for name, values in self.parts.items()}


def main(model, args, train_set):
    trainer = LoggingTrainer(model=model, args=args, train_dataset=train_set)
    trainer.train()
    torch.save(trainer.curves(), "curves.pt")
