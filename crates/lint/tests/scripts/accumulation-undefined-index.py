# Cases of accumulation-undefined-index; crates/lint/tests/support/cases.rs describes the format.

# ======== forgot_enumerate.wrong.py ========
import torch
from torch import nn, optim


def train_epoch(model, loader, optimizer, device, accumulation_steps=4):
    criterion = nn.MSELoss()
    model.train()
    optimizer.zero_grad()
    for features, target in loader:
        features, target = features.to(device), target.to(device)
        loss = criterion(model(features), target) / accumulation_steps
        loss.backward()
        if (step + 1) % accumulation_steps == 0:  # expect: accumulation-undefined-index
            optimizer.step()
            optimizer.zero_grad()
    optimizer.step()
    optimizer.zero_grad()


def main(loader):
    device = torch.device("cpu")
    model = nn.Sequential(nn.Linear(30, 90), nn.ReLU(), nn.Linear(90, 1)).to(device)
    optimizer = optim.Adagrad(model.parameters(), lr=0.01)
    for epoch in range(12):
        train_epoch(model, loader, optimizer, device)
    return model

# ======== forgot_enumerate.right.py ========
import torch
from torch import nn, optim


def train_epoch(model, loader, optimizer, device, accumulation_steps=4):
    criterion = nn.MSELoss()
    model.train()
    optimizer.zero_grad()
    for step, (features, target) in enumerate(loader):
        features, target = features.to(device), target.to(device)
        loss = criterion(model(features), target) / accumulation_steps
        loss.backward()
        if (step + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    optimizer.step()
    optimizer.zero_grad()


def main(loader):
    device = torch.device("cpu")
    model = nn.Sequential(nn.Linear(30, 90), nn.ReLU(), nn.Linear(90, 1)).to(device)
    optimizer = optim.Adagrad(model.parameters(), lr=0.01)
    for epoch in range(12):
        train_epoch(model, loader, optimizer, device)
    return model

# ======== never_counted.wrong.py ========
"""Accumulates eight pairs; the index was lost when the loops were merged with zip."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


def train(student, teacher, clean: DataLoader, noisy: DataLoader, k: int = 8):
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-4)
    criterion = nn.MSELoss()
    teacher.eval()
    student.train()
    for epoch in range(10):
        optimizer.zero_grad()
        for (a, _), (b, _) in zip(clean, noisy):
            with torch.no_grad():
                target = teacher(a)
            loss = criterion(student(b), target) / k
            loss.backward()
            if i % k == k - 1:  # expect: accumulation-undefined-index
                optimizer.step()
                optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()
        torch.save(student.state_dict(), f"student-{epoch}.pt")
    return student

# ======== never_counted.right.py ========
"""Accumulates eight pairs; the index was lost when the loops were merged with zip."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


def train(student, teacher, clean: DataLoader, noisy: DataLoader, k: int = 8):
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-4)
    criterion = nn.MSELoss()
    teacher.eval()
    student.train()
    for epoch in range(10):
        optimizer.zero_grad()
        for i, ((a, _), (b, _)) in enumerate(zip(clean, noisy)):
            with torch.no_grad():
                target = teacher(a)
            loss = criterion(student(b), target) / k
            loss.backward()
            if i % k == k - 1:
                optimizer.step()
                optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()
        torch.save(student.state_dict(), f"student-{epoch}.pt")
    return student

# ======== wrong_name.wrong.py ========
import torch
from torch import nn


class SpeechTrainer:
    def __init__(self, model, loader, accumulate=4):
        self.model = model
        self.loader = loader
        self.accumulate = accumulate
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

    def train_one_epoch(self, device):
        self.model.train()
        self.optimizer.zero_grad()
        for batch_idx, (mel, text, mel_len, text_len) in enumerate(self.loader):
            log_probs = self.model(mel.to(device)).log_softmax(dim=-1).transpose(0, 1)
            loss = self.ctc(log_probs, text.to(device), mel_len, text_len)
            (loss / self.accumulate).backward()
            if (batch_id + 1) % self.accumulate == 0:  # expect: accumulation-undefined-index
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def fit(self, device, epochs=100):
        for epoch in range(epochs):
            self.train_one_epoch(device)
            torch.save(self.model.state_dict(), "speech.pt")

# ======== wrong_name.right.py ========
import torch
from torch import nn


class SpeechTrainer:
    def __init__(self, model, loader, accumulate=4):
        self.model = model
        self.loader = loader
        self.accumulate = accumulate
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

    def train_one_epoch(self, device):
        self.model.train()
        self.optimizer.zero_grad()
        for batch_idx, (mel, text, mel_len, text_len) in enumerate(self.loader):
            log_probs = self.model(mel.to(device)).log_softmax(dim=-1).transpose(0, 1)
            loss = self.ctc(log_probs, text.to(device), mel_len, text_len)
            (loss / self.accumulate).backward()
            if (batch_idx + 1) % self.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def fit(self, device, epochs=100):
        for epoch in range(epochs):
            self.train_one_epoch(device)
            torch.save(self.model.state_dict(), "speech.pt")
