import torch
from torch import nn, optim


class FixMatch:
    """Labelled and unlabelled batches side by side."""

    def __init__(self, model, threshold=0.95):
        self.model = model
        self.threshold = threshold
        self.optim = optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
        self.ce = nn.CrossEntropyLoss()

    def unlabelled_loss(self, weak, strong):
        with torch.no_grad():
            probs = torch.softmax(self.model(weak), dim=-1)
            confidence, pseudo = probs.max(dim=-1)
        each = nn.functional.cross_entropy(self.model(strong), pseudo, reduction="none")
        return (each * (confidence > self.threshold)).mean()

    def train_one_epoch(self, labelled, unlabelled, device):
        self.model.train()
        total = 0.0
        for (x, y), (weak, strong) in zip(labelled, unlabelled):
            supervised = self.ce(self.model(x.to(device)), y.to(device))
            loss = supervised + self.unlabelled_loss(weak.to(device), strong.to(device))
            loss.backward()
            self.optim.step()  # expect: missing-zero-grad
            total += loss.item()
        return total
