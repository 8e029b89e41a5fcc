import torch
import torch.nn.functional as F


class Autoencoder(torch.nn.Module):
    def __init__(self, size, code):
        super().__init__()
        self.down = torch.nn.Linear(size, code)
        self.up = torch.nn.Linear(code, size)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.loss_sum = 0.0
        self.steps = 0

    def reset(self):
        self.loss_sum = 0.0
        self.steps = 0

    def train_batch(self, x):
        self.optimizer.zero_grad()
        rebuilt = self.model(x)
        loss = F.l1_loss(rebuilt, x) + 1e-3 * self.model.down.weight.abs().sum()
        loss.backward()
        self.optimizer.step()
        self.loss_sum += loss.detach().item()
        self.steps += 1

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.reset()
            for x, _ in loader:
                self.train_batch(x)
            print("%d %.5f" % (epoch, self.loss_sum / self.steps))


def build(size=400, code=20, lr=1e-3):
    model = Autoencoder(size, code)
    return Trainer(model, torch.optim.Adam(model.parameters(), lr=lr))
