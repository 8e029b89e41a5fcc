# cause: shm-exhausted
# shm: 16M
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
        return 1000

    def __getitem__(self, index):
        return torch.randn(256).repeat(4000, 1)


for x in DataLoader(Images(), batch_size=8, num_workers=2):
    time.sleep(0.01)
