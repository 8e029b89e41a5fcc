import time
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class ScanDataset(Dataset):
    """Decoding a scan is slow, so keep what was decoded already."""

    def __init__(self, n_scans, size=256):
        self.ids = list(range(n_scans))
        self.size = size
        self.cache = {}

    def __len__(self):
        return len(self.ids)

    def _decode(self, scan_id):
        time.sleep(0.01)
        rng = np.random.default_rng(scan_id)
        return rng.random((3, self.size, self.size), dtype=np.float32)

    def __getitem__(self, idx):
        if idx not in self.cache:
            self.cache[idx] = self._decode(self.ids[idx])
        scan = self.cache[idx]
        if np.random.rand() < 0.5:
            scan = scan[:, :, ::-1].copy()
        return torch.from_numpy(scan).clone(), self.ids[idx] % 2


def main():
    torch.manual_seed(0)
    loader = DataLoader(ScanDataset(850), batch_size=16, shuffle=True,
                        num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.AvgPool2d(4), nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 20 == 0:
                print(f"epoch {epoch} it {i} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
