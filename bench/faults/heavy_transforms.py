# cause: input-bound
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
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        return sum(torch.randn(120, 256).sort(0).values.mean(0) for _ in range(4))


train(DataLoader(Images(), batch_size=8))
