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
