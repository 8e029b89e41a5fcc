import os

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData
from torchvision.transforms import ToTensor


def main():
    workers = min(8, os.cpu_count() or 1)
    loader = DataLoader(FakeData(transform=ToTensor()), batch_size=32, num_workers=workers)
    model = nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(192, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for image, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
