# cause: loader-memory
# budget: 1500MB
# needs: torch
import time

import torch
from torch.utils.data import DataLoader, Dataset

model = torch.nn.Linear(256, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(loader):
    for x in loader:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

class Images(Dataset):
    def __init__(self):
        self.kept = []

    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        self.kept.append(bytearray(2_000_000))
        return torch.randn(256)


train(DataLoader(Images(), batch_size=8, num_workers=3))
