# cause: none
# needs: torch
# budget: 3GB
import time

import torch
from torch.utils.data import DataLoader, Dataset

model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(12)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(loader):
    for x in loader:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

class Images(Dataset):
    def __len__(self):
        return 8000

    def __getitem__(self, index):
        return torch.randn(256)


for epoch in range(2):
    train(DataLoader(Images(), batch_size=64, num_workers=1))
