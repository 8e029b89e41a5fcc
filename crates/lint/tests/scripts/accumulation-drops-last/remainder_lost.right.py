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
