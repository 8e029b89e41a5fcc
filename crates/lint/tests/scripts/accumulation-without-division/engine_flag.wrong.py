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
