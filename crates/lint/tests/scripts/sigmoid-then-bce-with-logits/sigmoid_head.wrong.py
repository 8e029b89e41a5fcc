import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, inputs, tags):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 512), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(512, tags)

    def forward(self, x):
        return torch.sigmoid(self.head(self.body(x)))  # expect: sigmoid-then-bce-with-logits


class TagTrainer:
    def __init__(self, inputs, tags, lr=1e-3):
        self.model = Tagger(inputs, tags)
        self.loss_fn = nn.BCEWithLogitsLoss()  # or: sigmoid-then-bce-with-logits
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)

    def step(self, x, y):
        self.optim.zero_grad()
        loss = self.loss_fn(self.model(x), y)  # or: sigmoid-then-bce-with-logits
        loss.backward()
        self.optim.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            mean = sum(self.step(x, y) for x, y in loader) / len(loader)
            print(epoch, round(mean, 4))
