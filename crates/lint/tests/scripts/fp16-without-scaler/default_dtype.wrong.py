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
