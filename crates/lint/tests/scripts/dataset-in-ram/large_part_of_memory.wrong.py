"""Half of the memory at once is too much when the copy for training comes on top."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def waves(rows, length):
    return np.zeros((rows, length), dtype=np.float32)  # expect: dataset-in-ram


def loader(batch_size):
    signals = torch.from_numpy(waves(1_500_000, 2048))
    labels = torch.zeros(1_500_000, dtype=torch.long)
    return DataLoader(TensorDataset(signals, labels), batch_size=batch_size, shuffle=True)


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
