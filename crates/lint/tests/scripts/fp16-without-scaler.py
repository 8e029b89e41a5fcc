# Cases of fp16-without-scaler; crates/lint/tests/support/cases.rs describes the format.

# ======== autocast_half.wrong.py ========
import torch
from torch import nn


def train(model, loader, epochs=10):
    device = torch.device("cuda")
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, total_steps=epochs * len(loader)
    )
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):  # expect: fp16-without-scaler
                loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
        torch.save(model.state_dict(), "half.pt")
    return model

# ======== autocast_half.right.py ========
import torch
from torch import nn


def train(model, loader, epochs=10):
    device = torch.device("cuda")
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.cuda.amp.GradScaler()
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, total_steps=epochs * len(loader)
    )
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
        torch.save(model.state_dict(), "half.pt")
    return model

# ======== chosen_dtype.wrong.py ========
import argparse

import torch
from torch import nn, optim


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-4)
    return parser.parse_args()


def train(model, loader, args):
    half = torch.float16
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        total = 0.0
        for source, target in loader:
            source, target = source.cuda(), target.cuda()
            optimizer.zero_grad()
            with torch.amp.autocast(device_type="cuda", dtype=half):  # expect: fp16-without-scaler
                loss = criterion(model(source), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    from flow import make_loader, make_model

    train(make_model().cuda(), make_loader(), parse())

# ======== chosen_dtype.right.py ========
import argparse

import torch
from torch import nn, optim


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-4)
    return parser.parse_args()


def train(model, loader, args):
    half = torch.bfloat16
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        total = 0.0
        for source, target in loader:
            source, target = source.cuda(), target.cuda()
            optimizer.zero_grad()
            with torch.amp.autocast(device_type="cuda", dtype=half):
                loss = criterion(model(source), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    from flow import make_loader, make_model

    train(make_model().cuda(), make_loader(), parse())

# ======== default_dtype.wrong.py ========
import torch
import torch.nn as nn
from torch.cuda.amp import autocast


class Pretrainer:
    def __init__(self, model, lr):
        self.model = model.cuda()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, ids):
        with autocast():  # expect: fp16-without-scaler
            logits = self.model(ids[:, :-1])
            loss = self.criterion(logits.flatten(0, 1), ids[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def train(self, loader, epochs=1):
        self.model.train()
        for epoch in range(epochs):
            mean = sum(self.training_step(ids.cuda()) for ids in loader) / len(loader)
            print(epoch, mean)

# ======== default_dtype.right.py ========
import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast


class Pretrainer:
    def __init__(self, model, lr):
        self.model = model.cuda()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scaler = GradScaler()
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, ids):
        with autocast():
            logits = self.model(ids[:, :-1])
            loss = self.criterion(logits.flatten(0, 1), ids[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def train(self, loader, epochs=1):
        self.model.train()
        for epoch in range(epochs):
            mean = sum(self.training_step(ids.cuda()) for ids in loader) / len(loader)
            print(epoch, mean)
