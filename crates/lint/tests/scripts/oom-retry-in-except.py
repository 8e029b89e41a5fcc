# Cases of oom-retry-in-except; crates/lint/tests/support/cases.rs describes the format.

# ======== halve_batch.wrong.py ========
import torch
from torch import nn


def run_step(model, criterion, optimizer, images, labels):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_epoch(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        try:
            total += run_step(model, criterion, optimizer, images, labels)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            half = images.size(0) // 2
            total += run_step(model, criterion, optimizer, images[:half], labels[:half])  # expect: oom-retry-in-except
    return total / len(loader)


def main(model, loader, device, epochs=10):
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        mean = train_epoch(model, loader, optimizer, device)
        print(epoch, mean)

# ======== halve_batch.right.py ========
import torch
from torch import nn


def run_step(model, criterion, optimizer, images, labels):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_epoch(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        too_large = False
        try:
            total += run_step(model, criterion, optimizer, images, labels)
        except torch.cuda.OutOfMemoryError:
            too_large = True
        if too_large:
            torch.cuda.empty_cache()
            half = images.size(0) // 2
            total += run_step(model, criterion, optimizer, images[:half], labels[:half])
    return total / len(loader)


def main(model, loader, device, epochs=10):
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        mean = train_epoch(model, loader, optimizer, device)
        print(epoch, mean)

# ======== long_texts.wrong.py ========
"""Turns a shelf of books into vectors; the longest books do not fit on the card at once."""
import json

import torch


def read(path):
    with open(path) as lines:
        for line in lines:
            yield json.loads(line)["tokens"]


@torch.no_grad()
def embed_all(encoder, texts):
    vectors = []
    for text in texts:
        ids = torch.tensor([text], device="cuda")
        try:
            vector = encoder(ids).mean(dim=1).squeeze(0)
        except torch.OutOfMemoryError:
            parts = ids.chunk(4, dim=1)
            vector = sum(encoder(part).mean(dim=1).squeeze(0) for part in parts) / 4  # expect: oom-retry-in-except
        vectors.append(vector.cpu())
    return torch.stack(vectors)


def main(encoder, path="books.jsonl"):
    encoder = encoder.cuda().eval()
    table = embed_all(encoder, read(path))
    torch.save(table, "texts.pt")

# ======== long_texts.right.py ========
"""Turns a shelf of books into vectors; the longest books do not fit on the card at once."""
import json

import torch


def read(path):
    with open(path) as lines:
        for line in lines:
            yield json.loads(line)["tokens"]


@torch.no_grad()
def embed_all(encoder, texts):
    vectors = []
    for text in texts:
        ids = torch.tensor([text], device="cuda")
        vector = None
        try:
            vector = encoder(ids).mean(dim=1).squeeze(0)
        except torch.OutOfMemoryError:
            print("too long for the card:", len(text))
        if vector is None:
            parts = ids.chunk(4, dim=1)
            vector = sum(encoder(part).mean(dim=1).squeeze(0) for part in parts) / 4
        vectors.append(vector.cpu())
    return torch.stack(vectors)


def main(encoder, path="books.jsonl"):
    encoder = encoder.cuda().eval()
    table = embed_all(encoder, read(path))
    torch.save(table, "texts.pt")

# ======== runtime_error_text.wrong.py ========
import gc

import torch
import torch.nn.functional as F


class Engine:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device

    def step(self, batch):
        x, y = batch
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def safe_step(self, batch):
        try:
            return self.step(batch)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            gc.collect()
            torch.cuda.empty_cache()
            x, y = batch
            middle = len(y) // 2
            first = self.step((x[:middle], y[:middle]))  # expect: oom-retry-in-except
            second = self.step((x[middle:], y[middle:]))  # or: oom-retry-in-except
            return (first + second) / 2

    def train_one_epoch(self, loader):
        self.model.train()
        return sum(self.safe_step(batch) for batch in loader) / len(loader)

# ======== runtime_error_text.right.py ========
import gc

import torch
import torch.nn.functional as F


class Engine:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device

    def step(self, batch):
        x, y = batch
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def safe_step(self, batch):
        try:
            return self.step(batch)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
        gc.collect()
        torch.cuda.empty_cache()
        x, y = batch
        middle = len(y) // 2
        first = self.step((x[:middle], y[:middle]))
        second = self.step((x[middle:], y[middle:]))
        return (first + second) / 2

    def train_one_epoch(self, loader):
        self.model.train()
        return sum(self.safe_step(batch) for batch in loader) / len(loader)
