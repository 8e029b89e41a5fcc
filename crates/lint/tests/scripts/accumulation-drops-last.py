# Cases of accumulation-drops-last; crates/lint/tests/support/cases.rs describes the format.

# ======== amp_function.wrong.py ========
import torch
import torch.nn.functional as F


def train_epoch(model, loader, optimizer, scaler, scheduler, k):
    model.train()
    seen = 0.0
    optimizer.zero_grad(set_to_none=True)
    for it, (patch, label) in enumerate(loader):
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(patch.cuda()), label.cuda())
        scaler.scale(loss / k).backward()
        seen += loss.item()
        if (it + 1) % k == 0:  # expect: accumulation-drops-last
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
    return seen / len(loader)


def run(model, loader, epochs=30, k=4):
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader) // k)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(epochs):
        print(epoch, train_epoch(model, loader, optimizer, scaler, scheduler, k))

# ======== amp_function.right.py ========
import torch
import torch.nn.functional as F


def train_epoch(model, loader, optimizer, scaler, scheduler, k):
    model.train()
    seen = 0.0
    optimizer.zero_grad(set_to_none=True)
    for it, (patch, label) in enumerate(loader):
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(patch.cuda()), label.cuda())
        scaler.scale(loss / k).backward()
        seen += loss.item()
        if (it + 1) % k == 0 or it + 1 == len(loader):
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
    return seen / len(loader)


def run(model, loader, epochs=30, k=4):
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader) // k)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(epochs):
        print(epoch, train_epoch(model, loader, optimizer, scaler, scheduler, k))

# ======== nested_helper.wrong.py ========
"""One graph at a time fits on the card, so the gradients of many are added up."""
import torch
from torch import nn


def fit(model, loader, device, epochs, accumulation=32, lr=1e-4):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()

    def apply():
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()

    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        for count, (graph, label) in enumerate(loader, 1):
            logits = model(graph.to(device))
            loss = criterion(logits, label.to(device)) / accumulation
            loss.backward()
            if count % accumulation == 0:  # expect: accumulation-drops-last
                apply()
        torch.save(model.state_dict(), f"graphs-{epoch}.pt")
    return model

# ======== nested_helper.right.py ========
"""One graph at a time fits on the card, so the gradients of many are added up."""
import torch
from torch import nn


def fit(model, loader, device, epochs, accumulation=32, lr=1e-4):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()

    def apply():
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()

    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        for count, (graph, label) in enumerate(loader, 1):
            logits = model(graph.to(device))
            loss = criterion(logits, label.to(device)) / accumulation
            loss.backward()
            if count % accumulation == 0:
                apply()
        if count % accumulation != 0:
            apply()
        torch.save(model.state_dict(), f"graphs-{epoch}.pt")
    return model

# ======== remainder_lost.wrong.py ========
import torch
from torch import nn
from tqdm.auto import tqdm


class Accumulator:
    def __init__(self, model, loader, optimizer, every=16):
        self.model = model
        self.loader = loader
        self.optimizer = optimizer
        self.every = every
        self.criterion = nn.CrossEntropyLoss()

    def epoch(self, device):
        self.model.train()
        self.optimizer.zero_grad()
        for i, (x, y) in enumerate(tqdm(self.loader)):
            logits = self.model(x.to(device))
            loss = self.criterion(logits, y.to(device)) / self.every
            loss.backward()
            if (i + 1) % self.every == 0:  # expect: accumulation-drops-last
                self.optimizer.step()
                self.optimizer.zero_grad()

    def run(self, epochs, device):
        for number in range(epochs):
            self.epoch(device)
            torch.save(self.model.state_dict(), "weights-%02d.pt" % number)

# ======== remainder_lost.right.py ========
import torch
from torch import nn
from tqdm.auto import tqdm


class Accumulator:
    def __init__(self, model, loader, optimizer, every=16):
        self.model = model
        self.loader = loader
        self.optimizer = optimizer
        self.every = every
        self.criterion = nn.CrossEntropyLoss()

    def epoch(self, device):
        self.model.train()
        self.optimizer.zero_grad()
        for i, (x, y) in enumerate(tqdm(self.loader)):
            logits = self.model(x.to(device))
            loss = self.criterion(logits, y.to(device)) / self.every
            loss.backward()
            if (i + 1) % self.every == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        if len(self.loader) % self.every != 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def run(self, epochs, device):
        for number in range(epochs):
            self.epoch(device)
            torch.save(self.model.state_dict(), "weights-%02d.pt" % number)

# ======== research_repo.wrong.py ========
"""Fine-tuning of a small transformer on one card, with a warm-up and clipping."""
import argparse
import math
import random

import torch
import torch.nn.functional as F
from torch import nn


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--max-norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


class Tiny(nn.Module):
    def __init__(self, vocab=2000, width=64, length=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.place = nn.Parameter(torch.randn(1, length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1)).to(ids.device)
        x = self.embed(ids) + self.place[:, : ids.size(1)]
        return self.head(self.blocks(x, mask=mask))


def documents(count, seed, length=128, vocab=2000):
    rng = random.Random(seed)
    for _ in range(count):
        start = rng.randrange(vocab)
        yield torch.tensor([(start + 7 * place) % vocab for place in range(length)])


def make_batches(count, size, seed):
    rows = list(documents(count, seed))
    return [torch.stack(rows[at : at + size]) for at in range(0, len(rows), size)]


def rate(step, warmup=100, total=2000):
    if step < warmup:
        return step / warmup
    return max(0.0, 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup))))


def finetune(model, batches, args, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad(set_to_none=True)
        for step, ids in enumerate(batches):
            ids = ids.to(device)
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            loss = loss / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:  # expect: accumulation-drops-last
                nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad(set_to_none=True)
        print(epoch, loss.item() * args.gradient_accumulation_steps)


if __name__ == "__main__":
    settings = options()
    torch.manual_seed(settings.seed)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    finetune(Tiny().to(where), make_batches(500, settings.batch_size, settings.seed), settings, where)

# ======== research_repo.right.py ========
"""Fine-tuning of a small transformer on one card, with a warm-up and clipping."""
import argparse
import math
import random

import torch
import torch.nn.functional as F
from torch import nn


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--max-norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


class Tiny(nn.Module):
    def __init__(self, vocab=2000, width=64, length=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.place = nn.Parameter(torch.randn(1, length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1)).to(ids.device)
        x = self.embed(ids) + self.place[:, : ids.size(1)]
        return self.head(self.blocks(x, mask=mask))


def documents(count, seed, length=128, vocab=2000):
    rng = random.Random(seed)
    for _ in range(count):
        start = rng.randrange(vocab)
        yield torch.tensor([(start + 7 * place) % vocab for place in range(length)])


def make_batches(count, size, seed):
    rows = list(documents(count, seed))
    return [torch.stack(rows[at : at + size]) for at in range(0, len(rows), size)]


def rate(step, warmup=100, total=2000):
    if step < warmup:
        return step / warmup
    return max(0.0, 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup))))


def finetune(model, batches, args, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad(set_to_none=True)
        for step, ids in enumerate(batches):
            ids = ids.to(device)
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            loss = loss / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0 or step + 1 == len(batches):
                nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad(set_to_none=True)
        print(epoch, loss.item() * args.gradient_accumulation_steps)


if __name__ == "__main__":
    settings = options()
    torch.manual_seed(settings.seed)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    finetune(Tiny().to(where), make_batches(500, settings.batch_size, settings.seed), settings, where)
