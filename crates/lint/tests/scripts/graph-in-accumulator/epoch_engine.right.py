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
