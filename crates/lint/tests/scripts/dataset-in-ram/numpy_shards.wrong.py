from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ShardSet(Dataset):
    """Log-mel spectrograms, written as many .npy shards by the extraction script."""

    def __init__(self, folder):
        files = sorted(Path(folder).glob("*.npy"))
        self.frames = np.concatenate([np.load(f) for f in files])  # expect: dataset-in-ram

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        frame = torch.from_numpy(self.frames[index].astype("float32"))
        return frame[:-1], frame[-1].long()


def main(folder="mels", epochs=5):
    loader = DataLoader(ShardSet(folder), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 40))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
