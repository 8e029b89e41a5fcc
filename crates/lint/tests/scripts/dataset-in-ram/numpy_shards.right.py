from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ShardSet(Dataset):
    """Log-mel spectrograms, written as many .npy shards by the extraction script."""

    def __init__(self, folder):
        files = sorted(Path(folder).glob("*.npy"))
        self.shards = [np.load(f, mmap_mode="r") for f in files]
        self.ends = np.cumsum([len(shard) for shard in self.shards])

    def __len__(self):
        return int(self.ends[-1])

    def __getitem__(self, index):
        shard = int(np.searchsorted(self.ends, index, side="right"))
        within = index - (self.ends[shard - 1] if shard else 0)
        frame = torch.from_numpy(self.shards[shard][within].astype("float32"))
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
