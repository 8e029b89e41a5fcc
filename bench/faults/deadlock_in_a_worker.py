# cause: deadlock
# ask: 80
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

import threading

lock = threading.Lock()


class Images(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        if index == 2000:
            print("now", flush=True)
            lock.acquire()
            lock.acquire()
        return torch.randn(256)


train(DataLoader(Images(), batch_size=16, num_workers=1))
