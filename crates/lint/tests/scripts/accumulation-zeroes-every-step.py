# Cases of accumulation-zeroes-every-step; crates/lint/tests/support/cases.rs describes the format.

# ======== amp_accumulate.wrong.py ========
import torch
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast


def train_epoch(model, loader, optimizer, scaler, device, k=8):
    model.train()
    for step, (volume, mask) in enumerate(loader, start=1):
        volume, mask = volume.to(device), mask.to(device)
        optimizer.zero_grad(set_to_none=True)  # expect: accumulation-zeroes-every-step
        with autocast():
            loss = F.binary_cross_entropy_with_logits(model(volume), mask) / k
        scaler.scale(loss).backward()
        if step % k == 0 or step == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
            scaler.step(optimizer)
            scaler.update()


def main(model, loader, epochs=100):
    device = torch.device("cuda")
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.99, nesterov=True)
    scaler = GradScaler()
    for epoch in range(epochs):
        train_epoch(model, loader, optimizer, scaler, device)
        if epoch % 10 == 0:
            torch.save(model.state_dict(), f"volume-{epoch}.pt")

# ======== amp_accumulate.right.py ========
import torch
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast


def train_epoch(model, loader, optimizer, scaler, device, k=8):
    model.train()
    for step, (volume, mask) in enumerate(loader, start=1):
        volume, mask = volume.to(device), mask.to(device)
        with autocast():
            loss = F.binary_cross_entropy_with_logits(model(volume), mask) / k
        scaler.scale(loss).backward()
        if step % k == 0 or step == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)


def main(model, loader, epochs=100):
    device = torch.device("cuda")
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.99, nesterov=True)
    scaler = GradScaler()
    for epoch in range(epochs):
        train_epoch(model, loader, optimizer, scaler, device)
        if epoch % 10 == 0:
            torch.save(model.state_dict(), f"volume-{epoch}.pt")

# ======== counter_in_loop.wrong.py ========
import argparse

import torch
from torch import nn, optim


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--accum", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def train(args, net, loader, device):
    opt = optim.Adam(net.parameters(), lr=args.lr)
    loss_fn = nn.SmoothL1Loss()
    micro = 0
    for epoch in range(10):
        for image, box in loader:
            opt.zero_grad()  # expect: accumulation-zeroes-every-step
            loss = loss_fn(net(image.to(device)), box.to(device)) / args.accum
            loss.backward()
            micro += 1
            if micro % args.accum == 0:
                opt.step()
        if micro % args.accum != 0:
            opt.step()
            micro = 0
        torch.save(net.state_dict(), "boxes.pt")


if __name__ == "__main__":
    from detector import build_loader, build_net

    train(get_args(), build_net().cuda(), build_loader(), torch.device("cuda"))

# ======== counter_in_loop.right.py ========
import argparse

import torch
from torch import nn, optim


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--accum", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def train(args, net, loader, device):
    opt = optim.Adam(net.parameters(), lr=args.lr)
    loss_fn = nn.SmoothL1Loss()
    micro = 0
    opt.zero_grad()
    for epoch in range(10):
        for image, box in loader:
            loss = loss_fn(net(image.to(device)), box.to(device)) / args.accum
            loss.backward()
            micro += 1
            if micro % args.accum == 0:
                opt.step()
                opt.zero_grad()
        if micro % args.accum != 0:
            opt.step()
            opt.zero_grad()
            micro = 0
        torch.save(net.state_dict(), "boxes.pt")


if __name__ == "__main__":
    from detector import build_loader, build_net

    train(get_args(), build_net().cuda(), build_loader(), torch.device("cuda"))

# ======== engine_class.wrong.py ========
import torch
from torch import nn


class AccumulatingTrainer:
    def __init__(self, model, train_loader, args):
        self.args = args
        self.model = model.to(args.device)
        self.loader = train_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, args.max_steps)

    def compute_loss(self, batch):
        ids = batch["input_ids"].to(self.args.device)
        labels = batch["labels"].to(self.args.device)
        logits = self.model(ids)
        return self.criterion(logits.flatten(0, 1), labels.flatten())

    def train_one_epoch(self):
        self.model.train()
        last = len(self.loader) - 1
        total = 0.0
        for idx, batch in enumerate(self.loader):
            self.model.zero_grad()  # expect: accumulation-zeroes-every-step
            loss = self.compute_loss(batch) / self.args.accumulation
            loss.backward()
            total += loss.item()
            if (idx + 1) % self.args.accumulation == 0 or idx == last:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
        return total

# ======== engine_class.right.py ========
import torch
from torch import nn


class AccumulatingTrainer:
    def __init__(self, model, train_loader, args):
        self.args = args
        self.model = model.to(args.device)
        self.loader = train_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, args.max_steps)

    def compute_loss(self, batch):
        ids = batch["input_ids"].to(self.args.device)
        labels = batch["labels"].to(self.args.device)
        logits = self.model(ids)
        return self.criterion(logits.flatten(0, 1), labels.flatten())

    def train_one_epoch(self):
        self.model.train()
        last = len(self.loader) - 1
        total = 0.0
        self.model.zero_grad()
        for idx, batch in enumerate(self.loader):
            loss = self.compute_loss(batch) / self.args.accumulation
            loss.backward()
            total += loss.item()
            if (idx + 1) % self.args.accumulation == 0 or idx == last:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                self.model.zero_grad()
        return total

# ======== four_batches.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model, dataset, epochs, lr=3e-5, accumulate=4):
    device = torch.device("cuda")
    model = model.to(device)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    batches = len(loader)
    for epoch in range(epochs):
        model.train()
        for i, (ids, labels) in enumerate(loader):
            ids, labels = ids.to(device), labels.to(device)
            optimizer.zero_grad()  # expect: accumulation-zeroes-every-step
            logits = model(ids)
            loss = criterion(logits.view(-1, logits.size(-1)), labels.view(-1))
            loss = loss / accumulate
            loss.backward()
            if (i + 1) % accumulate == 0 or i + 1 == batches:
                optimizer.step()
        torch.save(model.state_dict(), f"epoch{epoch}.pt")
    return model

# ======== four_batches.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model, dataset, epochs, lr=3e-5, accumulate=4):
    device = torch.device("cuda")
    model = model.to(device)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    batches = len(loader)
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        for i, (ids, labels) in enumerate(loader):
            ids, labels = ids.to(device), labels.to(device)
            logits = model(ids)
            loss = criterion(logits.view(-1, logits.size(-1)), labels.view(-1))
            loss = loss / accumulate
            loss.backward()
            if (i + 1) % accumulate == 0 or i + 1 == batches:
                optimizer.step()
                optimizer.zero_grad()
        torch.save(model.state_dict(), f"epoch{epoch}.pt")
    return model

# ======== index_lost_too.wrong.py ========
"""Meant to act like batches of 32 on a small card."""
import torch
from torch import nn
from torch.utils.data import DataLoader


def fit(model: nn.Module, loader: DataLoader, device: torch.device, epochs: int = 4):
    accumulation_steps = 8
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-5)
    for epoch in range(epochs):
        for tokens, labels in loader:
            tokens, labels = tokens.to(device), labels.to(device)
            optimizer.zero_grad()  # expect: accumulation-zeroes-every-step
            outputs = model(tokens)
            loss = criterion(outputs, labels)
            loss = loss / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:  # expect: accumulation-undefined-index
                optimizer.step()
        optimizer.step()
        print("finished epoch", epoch)
    return model


def save(model: nn.Module, path: str):
    torch.save(model.state_dict(), path)

# ======== index_lost_too.right.py ========
"""Meant to act like batches of 32 on a small card."""
import torch
from torch import nn
from torch.utils.data import DataLoader


def fit(model: nn.Module, loader: DataLoader, device: torch.device, epochs: int = 4):
    accumulation_steps = 8
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-5)
    for epoch in range(epochs):
        optimizer.zero_grad()
        for i, (tokens, labels) in enumerate(loader):
            tokens, labels = tokens.to(device), labels.to(device)
            outputs = model(tokens)
            loss = criterion(outputs, labels)
            loss = loss / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        optimizer.step()
        print("finished epoch", epoch)
    return model


def save(model: nn.Module, path: str):
    torch.save(model.state_dict(), path)
