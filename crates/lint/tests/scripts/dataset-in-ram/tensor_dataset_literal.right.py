"""Throughput test with made-up data; a loader is already used, so memory should be fine."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SAMPLES = 5_000_000
WIDTH = 1000


class MadeUp(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(WIDTH, generator=generator), index % 10


def get_loader(batch_size=64):
    return DataLoader(MadeUp(), batch_size=batch_size, pin_memory=True)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(WIDTH, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for features, classes in get_loader():
        features, classes = features.to(device), classes.to(device)
        optimizer.zero_grad()
        loss = criterion(model(features), classes)
        loss.backward()
        optimizer.step()
    print("last loss", loss.item())


if __name__ == "__main__":
    main()
