import torch
from torch import nn


class GRUForecaster(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, h=None):
        seq, h = self.gru(x, h)
        return self.out(seq[:, -1]), h


class StatefulTrainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.hidden = None
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def train_one_epoch(self, loader, device):
        self.hidden = None
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            self.optimizer.zero_grad()
            prediction, self.hidden = self.model(x, self.hidden)  # expect: undetached-state
            loss = self.criterion(prediction, y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    def fit(self, loader, device, epochs=10):
        for epoch in range(epochs):
            print(epoch, self.train_one_epoch(loader, device))
