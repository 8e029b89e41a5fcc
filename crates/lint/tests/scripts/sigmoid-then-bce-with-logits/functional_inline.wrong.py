import torch
import torch.nn.functional as F
from torch import nn


class ClickModel(nn.Module):
    def __init__(self, users, items, width=32):
        super().__init__()
        self.user = nn.Embedding(users, width)
        self.item = nn.Embedding(items, width)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(dim=1) + self.bias


def train(loader, users, items, epochs=3):
    model = ClickModel(users, items)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(epochs):
        total = 0.0
        for user, item, clicked in loader:
            optimizer.zero_grad()
            probability = model(user, item).sigmoid()  # or: sigmoid-then-bce-with-logits
            loss = F.binary_cross_entropy_with_logits(probability, clicked)  # expect: sigmoid-then-bce-with-logits
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))
    return model
