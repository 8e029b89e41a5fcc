import torch
import torch.nn.functional as F
from torch import nn, optim


class Siamese(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, left, right):
        return F.cosine_similarity(self.tower(left), self.tower(right))


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def optimize(self, loss):
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)  # expect: retain-graph-in-loop
        self.optimizer.step()

    def train_one_epoch(self, loader):
        for left, right, same in loader:
            score = self.model(left, right)
            loss = F.mse_loss(score, same)
            self.optimize(loss)


def main(loader, epochs=10):
    trainer = Trainer(Siamese())
    for _ in range(epochs):
        trainer.train_one_epoch(loader)
    torch.save(trainer.model.state_dict(), "siamese.pt")
