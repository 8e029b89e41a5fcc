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

class Volumes(Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        kept.append(torch.randn(1_500_000))
        time.sleep(0.01)
        return torch.randn(256)


kept = []
train(DataLoader(Volumes(), batch_size=16, num_workers=2, prefetch_factor=4))
