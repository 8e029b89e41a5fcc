# Cases of accumulation-without-division; crates/lint/tests/support/cases.rs describes the format.

# ======== engine_flag.wrong.py ========
import torch
from torch import nn
from tqdm import tqdm


class Trainer:
    def __init__(self, model, optimizer, accumulation_steps, device):
        self.model = model.to(device)
        self.optimizer = optimizer
        self.accumulation_steps = accumulation_steps
        self.device = device
        self.criterion = nn.CrossEntropyLoss()

    def optimizer_step(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train_one_epoch(self, loader):
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for i, (x, y) in enumerate(tqdm(loader, leave=False)):
            logits = self.model(x.to(self.device))
            loss = self.criterion(logits, y.to(self.device))
            loss.backward()  # expect: accumulation-without-division
            total += loss.item()
            if (i + 1) % self.accumulation_steps == 0:
                self.optimizer_step()
        if len(loader) % self.accumulation_steps:
            self.optimizer_step()
        return total / len(loader)


def build(model, device="cuda", lr=1e-4, accumulation_steps=4):
    return Trainer(model, torch.optim.AdamW(model.parameters(), lr=lr), accumulation_steps, device)

# ======== engine_flag.right.py ========
import torch
from torch import nn
from tqdm import tqdm


class Trainer:
    def __init__(self, model, optimizer, accumulation_steps, device):
        self.model = model.to(device)
        self.optimizer = optimizer
        self.accumulation_steps = accumulation_steps
        self.device = device
        self.criterion = nn.CrossEntropyLoss()

    def optimizer_step(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train_one_epoch(self, loader):
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for i, (x, y) in enumerate(tqdm(loader, leave=False)):
            logits = self.model(x.to(self.device))
            loss = self.criterion(logits, y.to(self.device))
            (loss / self.accumulation_steps).backward()
            total += loss.item()
            if (i + 1) % self.accumulation_steps == 0:
                self.optimizer_step()
        if len(loader) % self.accumulation_steps:
            self.optimizer_step()
        return total / len(loader)


def build(model, device="cuda", lr=1e-4, accumulation_steps=4):
    return Trainer(model, torch.optim.AdamW(model.parameters(), lr=lr), accumulation_steps, device)

# ======== reward_model.wrong.py ========
import torch
import torch.nn.functional as F

GRADIENT_ACCUMULATION = 16


def preference_loss(model, chosen, rejected):
    return -F.logsigmoid(model(chosen) - model(rejected)).mean()


def train(model, pairs, optimizer, epochs):
    step = 0
    for epoch in range(epochs):
        for chosen, rejected in pairs:
            loss = preference_loss(model, chosen, rejected)
            loss.backward()  # expect: accumulation-without-division
            step += 1
            if step % GRADIENT_ACCUMULATION == 0:
                optimizer.step()
                optimizer.zero_grad()
    if step % GRADIENT_ACCUMULATION:
        optimizer.step()
        optimizer.zero_grad()


def main(model, pairs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.0)
    optimizer.zero_grad()
    train(model, pairs, optimizer, epochs=1)
    torch.save(model.state_dict(), "reward.pt")

# ======== reward_model.right.py ========
import torch
import torch.nn.functional as F

GRADIENT_ACCUMULATION = 16


def preference_loss(model, chosen, rejected):
    return -F.logsigmoid(model(chosen) - model(rejected)).mean()


def train(model, pairs, optimizer, epochs):
    step = 0
    for epoch in range(epochs):
        for chosen, rejected in pairs:
            loss = preference_loss(model, chosen, rejected) / GRADIENT_ACCUMULATION
            loss.backward()
            step += 1
            if step % GRADIENT_ACCUMULATION == 0:
                optimizer.step()
                optimizer.zero_grad()
    if step % GRADIENT_ACCUMULATION:
        optimizer.step()
        optimizer.zero_grad()


def main(model, pairs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.0)
    optimizer.zero_grad()
    train(model, pairs, optimizer, epochs=1)
    torch.save(model.state_dict(), "reward.pt")

# ======== scaled_but_not_divided.wrong.py ========
"""Takes noise out of pictures; six small batches make one step."""
import torch
from torch import nn


def train(model, loader, epochs=5, every=6):
    scaler = torch.cuda.amp.GradScaler()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = nn.L1Loss()
    model.cuda().train()
    for epoch in range(epochs):
        optimizer.zero_grad(set_to_none=True)
        for number, (noisy, clean) in enumerate(loader):
            noisy, clean = noisy.cuda(), clean.cuda()
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                loss = criterion(model(noisy), clean)
            scaler.scale(loss).backward()  # expect: accumulation-without-division
            boundary = (number + 1) % every == 0
            if boundary or number == len(loader) - 1:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
        print("epoch", epoch, "last", loss.item())
    torch.save(model.state_dict(), "denoiser.pt")
    return model

# ======== scaled_but_not_divided.right.py ========
"""Takes noise out of pictures; six small batches make one step."""
import torch
from torch import nn


def train(model, loader, epochs=5, every=6):
    scaler = torch.cuda.amp.GradScaler()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = nn.L1Loss()
    model.cuda().train()
    for epoch in range(epochs):
        optimizer.zero_grad(set_to_none=True)
        for number, (noisy, clean) in enumerate(loader):
            noisy, clean = noisy.cuda(), clean.cuda()
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                loss = criterion(model(noisy), clean)
            scaler.scale(loss / every).backward()
            boundary = (number + 1) % every == 0
            if boundary or number == len(loader) - 1:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
        print("epoch", epoch, "last", loss.item())
    torch.save(model.state_dict(), "denoiser.pt")
    return model

# ======== summed_up.wrong.py ========
import torch
import torch.nn.functional as F

ACCUMULATE = 8


def train_epoch(model, loader, optimizer, device):
    model.train()
    optimizer.zero_grad()
    steps = len(loader)
    for index, (images, masks) in enumerate(loader):
        images, masks = images.to(device), masks.to(device)
        logits = model(images)
        loss = F.cross_entropy(logits, masks)
        loss.backward()  # expect: accumulation-without-division
        if (index + 1) % ACCUMULATE == 0 or index + 1 == steps:
            optimizer.step()
            optimizer.zero_grad()


def main(model, loader):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(50):
        train_epoch(model, loader, optimizer, device)
        torch.save({"epoch": epoch, "model": model.state_dict()}, "last.pt")

# ======== summed_up.right.py ========
import torch
import torch.nn.functional as F

ACCUMULATE = 8


def train_epoch(model, loader, optimizer, device):
    model.train()
    optimizer.zero_grad()
    steps = len(loader)
    for index, (images, masks) in enumerate(loader):
        images, masks = images.to(device), masks.to(device)
        logits = model(images)
        loss = F.cross_entropy(logits, masks) / ACCUMULATE
        loss.backward()
        if (index + 1) % ACCUMULATE == 0 or index + 1 == steps:
            optimizer.step()
            optimizer.zero_grad()


def main(model, loader):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(50):
        train_epoch(model, loader, optimizer, device)
        torch.save({"epoch": epoch, "model": model.state_dict()}, "last.pt")
