import torch
import torch.nn as nn


class Engine:
    def __init__(self, model, criterion, optimizer, device):
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer
        self.device = device

    def train_fn(self, loader):
        self.model.train()
        final = 0.0
        for data in loader:
            inputs = data["x"].to(self.device)
            targets = data["y"].to(self.device)
            loss = self.criterion(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()  # expect: missing-zero-grad
            final += loss.item()
        return final / len(loader)

    @torch.no_grad()
    def eval_fn(self, loader):
        self.model.eval()
        final = 0.0
        for data in loader:
            outputs = self.model(data["x"].to(self.device))
            final += self.criterion(outputs, data["y"].to(self.device)).item()
        return final / len(loader)


def run(train_loader, valid_loader, device="cpu"):
    model = nn.Sequential(nn.Linear(875, 1024), nn.PReLU(), nn.Dropout(0.3), nn.Linear(1024, 206))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    engine = Engine(model.to(device), nn.BCEWithLogitsLoss(), optimizer, device)
    for epoch in range(20):
        print(epoch, engine.train_fn(train_loader), engine.eval_fn(valid_loader))
