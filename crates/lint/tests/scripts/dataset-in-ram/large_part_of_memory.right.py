"""The signals stay on the disk; each batch reads its own rows."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, rows, length):
        self.signals = np.memmap("waves.f32", dtype=np.float32, mode="r", shape=(rows, length))

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        return torch.from_numpy(np.array(self.signals[index])), 0


def loader(batch_size):
    return DataLoader(Waves(1_500_000, 2048), batch_size=batch_size, shuffle=True)


def main():
    model = nn.Sequential(nn.Linear(2048, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for signals, labels in loader(128):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(signals), labels)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
