"""PyTorch: samples are made when they are needed, and freed after use.

    antifreeze run --budget 1GB -- python dataset_good.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, number):
        generator = torch.Generator().manual_seed(number)
        return torch.rand(3, 224, 224, generator=generator)


model = nn.Sequential(nn.Conv2d(3, 4, 7, stride=7), nn.Flatten(), nn.Linear(4096, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for batch in DataLoader(Samples(), batch_size=20):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
