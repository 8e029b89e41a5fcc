# Cases of graph-in-accumulator; crates/lint/tests/support/cases.rs describes the format.

# ======== amp_scaler.wrong.py ========
import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast
from tqdm import tqdm


def train(model, loader, epochs, lr):
    device = torch.device("cuda")
    model.to(device)
    scaler = GradScaler()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    stats = {"loss": 0.0, "seen": 0}
    for epoch in range(epochs):
        stats["loss"], stats["seen"] = 0.0, 0
        bar = tqdm(loader, desc=f"epoch {epoch}")
        for images, labels in bar:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            stats["loss"] += loss * labels.size(0)  # expect: graph-in-accumulator
            stats["seen"] += labels.size(0)
        bar.close()
        print("mean", float(stats["loss"]) / stats["seen"])
    return model

# ======== amp_scaler.right.py ========
import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast
from tqdm import tqdm


def train(model, loader, epochs, lr):
    device = torch.device("cuda")
    model.to(device)
    scaler = GradScaler()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    stats = {"loss": 0.0, "seen": 0}
    for epoch in range(epochs):
        stats["loss"], stats["seen"] = 0.0, 0
        bar = tqdm(loader, desc=f"epoch {epoch}")
        for images, labels in bar:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            stats["loss"] += loss.item() * labels.size(0)
            stats["seen"] += labels.size(0)
        bar.close()
        print("mean", stats["loss"] / stats["seen"])
    return model

# ======== attribute_of_trainer.wrong.py ========
import torch
import torch.nn.functional as F


class Autoencoder(torch.nn.Module):
    def __init__(self, size, code):
        super().__init__()
        self.down = torch.nn.Linear(size, code)
        self.up = torch.nn.Linear(code, size)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.loss_sum = 0.0
        self.steps = 0

    def reset(self):
        self.loss_sum = 0.0
        self.steps = 0

    def train_batch(self, x):
        self.optimizer.zero_grad()
        rebuilt = self.model(x)
        loss = F.l1_loss(rebuilt, x) + 1e-3 * self.model.down.weight.abs().sum()
        loss.backward()
        self.optimizer.step()
        self.loss_sum += loss  # expect: graph-in-accumulator
        self.steps += 1

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.reset()
            for x, _ in loader:
                self.train_batch(x)
            print("%d %.5f" % (epoch, self.loss_sum / self.steps))


def build(size=400, code=20, lr=1e-3):
    model = Autoencoder(size, code)
    return Trainer(model, torch.optim.Adam(model.parameters(), lr=lr))

# ======== attribute_of_trainer.right.py ========
import torch
import torch.nn.functional as F


class Autoencoder(torch.nn.Module):
    def __init__(self, size, code):
        super().__init__()
        self.down = torch.nn.Linear(size, code)
        self.up = torch.nn.Linear(code, size)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.loss_sum = 0.0
        self.steps = 0

    def reset(self):
        self.loss_sum = 0.0
        self.steps = 0

    def train_batch(self, x):
        self.optimizer.zero_grad()
        rebuilt = self.model(x)
        loss = F.l1_loss(rebuilt, x) + 1e-3 * self.model.down.weight.abs().sum()
        loss.backward()
        self.optimizer.step()
        self.loss_sum += loss.detach().item()
        self.steps += 1

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.reset()
            for x, _ in loader:
                self.train_batch(x)
            print("%d %.5f" % (epoch, self.loss_sum / self.steps))


def build(size=400, code=20, lr=1e-3):
    model = Autoencoder(size, code)
    return Trainer(model, torch.optim.Adam(model.parameters(), lr=lr))

# ======== epoch_engine.wrong.py ========
"""Small engine that trains a text classifier and reports the mean loss of each epoch."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class BagClassifier(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, 128)
        self.head = nn.Linear(128, classes)

    def forward(self, tokens):
        return self.head(self.embed(tokens))


class Engine:
    def __init__(self, model, loader: DataLoader, device):
        self.model = model.to(device)
        self.loader = loader
        self.device = device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        self.criterion = nn.CrossEntropyLoss()

    def train_one_epoch(self):
        self.model.train()
        running = 0.0
        for tokens, target in self.loader:
            tokens = tokens.to(self.device)
            target = target.to(self.device)
            self.optimizer.zero_grad()
            logits = self.model(tokens)
            loss = self.criterion(logits, target)
            loss.backward()
            self.optimizer.step()
            running += loss  # expect: graph-in-accumulator
        return running / len(self.loader)

    def fit(self, epochs):
        for epoch in range(epochs):
            mean = self.train_one_epoch()
            print("epoch %d: %.4f" % (epoch, mean))

# ======== epoch_engine.right.py ========
"""Small engine that trains a text classifier and reports the mean loss of each epoch."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class BagClassifier(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, 128)
        self.head = nn.Linear(128, classes)

    def forward(self, tokens):
        return self.head(self.embed(tokens))


class Engine:
    def __init__(self, model, loader: DataLoader, device):
        self.model = model.to(device)
        self.loader = loader
        self.device = device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        self.criterion = nn.CrossEntropyLoss()

    def train_one_epoch(self):
        self.model.train()
        running = 0.0
        for tokens, target in self.loader:
            tokens = tokens.to(self.device)
            target = target.to(self.device)
            self.optimizer.zero_grad()
            logits = self.model(tokens)
            loss = self.criterion(logits, target)
            loss.backward()
            self.optimizer.step()
            running += loss.item()
        return running / len(self.loader)

    def fit(self, epochs):
        for epoch in range(epochs):
            mean = self.train_one_epoch()
            print("epoch %d: %.4f" % (epoch, mean))

# ======== gan_means.wrong.py ========
import torch
from torch import nn


def make(latent, size):
    generator = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, size), nn.Tanh())
    critic = nn.Sequential(nn.Linear(size, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    return generator, critic


def train(loader, device, latent=32, size=256, epochs=5):
    generator, critic = make(latent, size)
    generator.to(device)
    critic.to(device)
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        g_mean, d_mean = 0.0, 0.0
        for real, _ in loader:
            real = real.to(device)
            ones = torch.ones(real.size(0), 1, device=device)
            zeros = torch.zeros(real.size(0), 1, device=device)
            fake = generator(torch.randn(real.size(0), latent, device=device))

            opt_d.zero_grad()
            d_loss = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
            d_loss.backward()
            opt_d.step()

            opt_g.zero_grad()
            g_loss = bce(critic(fake), ones)
            g_loss.backward()
            opt_g.step()

            d_mean += d_loss.item() / len(loader)
            g_mean = g_mean + g_loss / len(loader)  # expect: graph-in-accumulator
        print(epoch, d_mean, g_mean)

# ======== gan_means.right.py ========
import torch
from torch import nn


def make(latent, size):
    generator = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, size), nn.Tanh())
    critic = nn.Sequential(nn.Linear(size, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    return generator, critic


def train(loader, device, latent=32, size=256, epochs=5):
    generator, critic = make(latent, size)
    generator.to(device)
    critic.to(device)
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        g_mean, d_mean = 0.0, 0.0
        for real, _ in loader:
            real = real.to(device)
            ones = torch.ones(real.size(0), 1, device=device)
            zeros = torch.zeros(real.size(0), 1, device=device)
            fake = generator(torch.randn(real.size(0), latent, device=device))

            opt_d.zero_grad()
            d_loss = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
            d_loss.backward()
            opt_d.step()

            opt_g.zero_grad()
            g_loss = bce(critic(fake), ones)
            g_loss.backward()
            opt_g.step()

            d_mean += d_loss.item() / len(loader)
            g_mean = g_mean + g_loss.item() / len(loader)
        print(epoch, d_mean, g_mean)

# ======== helper_returns_loss.wrong.py ========
import torch
from torch import nn, optim
from torch.utils.data import DataLoader as DL


def forward_pass(model, batch, device):
    x, y = (part.to(device) for part in batch)
    return nn.functional.cross_entropy(model(x), y)


def step(model, optimizer, batch, device):
    optimizer.zero_grad()
    loss = forward_pass(model, batch, device)
    loss.backward()
    optimizer.step()
    return loss


def train(model, dataset, device, epochs):
    loader = DL(dataset, batch_size=32, shuffle=True)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        epoch_loss = 0
        for batch in loader:
            epoch_loss += step(model, optimizer, batch, device)  # expect: graph-in-accumulator
        print("epoch", epoch, "mean loss", float(epoch_loss) / len(loader))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 4)).to(device)
    x, y = torch.randn(5000, 50), torch.randint(0, 4, (5000,))
    train(model, torch.utils.data.TensorDataset(x, y), device, epochs=20)


if __name__ == "__main__":
    main()

# ======== helper_returns_loss.right.py ========
import torch
from torch import nn, optim
from torch.utils.data import DataLoader as DL


def forward_pass(model, batch, device):
    x, y = (part.to(device) for part in batch)
    return nn.functional.cross_entropy(model(x), y)


def step(model, optimizer, batch, device):
    optimizer.zero_grad()
    loss = forward_pass(model, batch, device)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, dataset, device, epochs):
    loader = DL(dataset, batch_size=32, shuffle=True)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        epoch_loss = 0
        for batch in loader:
            epoch_loss += step(model, optimizer, batch, device)
        print("epoch", epoch, "mean loss", epoch_loss / len(loader))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 4)).to(device)
    x, y = torch.randn(5000, 50), torch.randint(0, 4, (5000,))
    train(model, torch.utils.data.TensorDataset(x, y), device, epochs=20)


if __name__ == "__main__":
    main()

# ======== penalty_sum.wrong.py ========
"""Sums the penalty as well as the loss; only the loss was turned into a number."""
import torch
from torch import nn


def l2_of(model):
    return sum((p ** 2).sum() for p in model.parameters())


def train_epoch(model, loader, optimizer, criterion, decay=1e-4):
    total_loss, total_penalty = 0.0, 0.0
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        penalty = decay * l2_of(model)
        (loss + penalty).backward()
        optimizer.step()
        total_loss += loss.item()
        total_penalty += penalty  # expect: graph-in-accumulator
    return total_loss / (i + 1), total_penalty / (i + 1)


def main(loader, epochs=15):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        loss, penalty = train_epoch(model, loader, optimizer, criterion)
        print(f"{epoch}: loss {loss:.4f} penalty {penalty:.4f}")
    return model

# ======== penalty_sum.right.py ========
"""Sums the penalty as well as the loss; only the loss was turned into a number."""
import torch
from torch import nn


def l2_of(model):
    return sum((p ** 2).sum() for p in model.parameters())


def train_epoch(model, loader, optimizer, criterion, decay=1e-4):
    total_loss, total_penalty = 0.0, 0.0
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        penalty = decay * l2_of(model)
        (loss + penalty).backward()
        optimizer.step()
        total_loss += loss.item()
        total_penalty += penalty.item()
    return total_loss / (i + 1), total_penalty / (i + 1)


def main(loader, epochs=15):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        loss, penalty = train_epoch(model, loader, optimizer, criterion)
        print(f"{epoch}: loss {loss:.4f} penalty {penalty:.4f}")
    return model

# ======== research_repo.wrong.py ========
"""Pretraining of a masked autoencoder on patches, research style."""
import argparse
import logging
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger("mae")


def get_args():
    parser = argparse.ArgumentParser("masked patches")
    parser.add_argument("--epochs", default=400, type=int)
    parser.add_argument("--batch_size", default=64, type=int)
    parser.add_argument("--mask", default=0.75, type=float)
    parser.add_argument("--lr", default=1.5e-4, type=float)
    parser.add_argument("--warmup", default=40, type=int)
    parser.add_argument("--output", default="runs/mae")
    return parser.parse_args()


class Patches(Dataset):
    def __len__(self):
        return 2000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(49, 48, generator=generator) + torch.linspace(0, 1, 48)


class MaskedAutoencoder(nn.Module):
    def __init__(self, patch=48, width=96, depth=2):
        super().__init__()
        self.embed = nn.Linear(patch, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.decode = nn.Linear(width, patch)

    def forward(self, patches, ratio):
        hidden = torch.rand(patches.shape[:2], device=patches.device) < ratio
        x = torch.where(hidden.unsqueeze(-1), self.token, self.embed(patches))
        out = self.decode(self.encoder(x))
        return F.mse_loss(out[hidden], patches[hidden])


def adjust(optimizer, epoch, args):
    if epoch < args.warmup:
        lr = args.lr * epoch / args.warmup
    else:
        lr = args.lr * 0.5 * (1 + math.cos(math.pi * (epoch - args.warmup) / (args.epochs - args.warmup)))
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def train_one_epoch(model, loader, optimizer, device, epoch, args):
    model.train(True)
    lr = adjust(optimizer, epoch, args)
    started, summed, seen = time.time(), 0.0, 0
    for it, patches in enumerate(loader):
        patches = patches.to(device, non_blocking=True)
        loss = model(patches, args.mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        summed = summed + loss * patches.size(0)  # expect: graph-in-accumulator
        seen += patches.size(0)
        if it % 100 == 0:
            logger.info("epoch %d it %d lr %.2e %.1f s", epoch, it, lr, time.time() - started)
    return float(summed) / seen


def main(args):
    os.makedirs(args.output, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = MaskedAutoencoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95))
    loader = DataLoader(Patches(), batch_size=args.batch_size, shuffle=True, drop_last=True)
    for epoch in range(args.epochs):
        logger.info("mean %.4f", train_one_epoch(model, loader, optimizer, device, epoch, args))
        torch.save(model.state_dict(), os.path.join(args.output, "last.pth"))


if __name__ == "__main__":
    main(get_args())

# ======== research_repo.right.py ========
"""Pretraining of a masked autoencoder on patches, research style."""
import argparse
import logging
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger("mae")


def get_args():
    parser = argparse.ArgumentParser("masked patches")
    parser.add_argument("--epochs", default=400, type=int)
    parser.add_argument("--batch_size", default=64, type=int)
    parser.add_argument("--mask", default=0.75, type=float)
    parser.add_argument("--lr", default=1.5e-4, type=float)
    parser.add_argument("--warmup", default=40, type=int)
    parser.add_argument("--output", default="runs/mae")
    return parser.parse_args()


class Patches(Dataset):
    def __len__(self):
        return 2000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(49, 48, generator=generator) + torch.linspace(0, 1, 48)


class MaskedAutoencoder(nn.Module):
    def __init__(self, patch=48, width=96, depth=2):
        super().__init__()
        self.embed = nn.Linear(patch, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.decode = nn.Linear(width, patch)

    def forward(self, patches, ratio):
        hidden = torch.rand(patches.shape[:2], device=patches.device) < ratio
        x = torch.where(hidden.unsqueeze(-1), self.token, self.embed(patches))
        out = self.decode(self.encoder(x))
        return F.mse_loss(out[hidden], patches[hidden])


def adjust(optimizer, epoch, args):
    if epoch < args.warmup:
        lr = args.lr * epoch / args.warmup
    else:
        lr = args.lr * 0.5 * (1 + math.cos(math.pi * (epoch - args.warmup) / (args.epochs - args.warmup)))
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def train_one_epoch(model, loader, optimizer, device, epoch, args):
    model.train(True)
    lr = adjust(optimizer, epoch, args)
    started, summed, seen = time.time(), 0.0, 0
    for it, patches in enumerate(loader):
        patches = patches.to(device, non_blocking=True)
        loss = model(patches, args.mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        summed = summed + loss.item() * patches.size(0)
        seen += patches.size(0)
        if it % 100 == 0:
            logger.info("epoch %d it %d lr %.2e %.1f s", epoch, it, lr, time.time() - started)
    return summed / seen


def main(args):
    os.makedirs(args.output, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = MaskedAutoencoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95))
    loader = DataLoader(Patches(), batch_size=args.batch_size, shuffle=True, drop_last=True)
    for epoch in range(args.epochs):
        logger.info("mean %.4f", train_one_epoch(model, loader, optimizer, device, epoch, args))
        torch.save(model.state_dict(), os.path.join(args.output, "last.pth"))


if __name__ == "__main__":
    main(get_args())
