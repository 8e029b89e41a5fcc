import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    CHANNELS = ["x", "y", "z"]

    def __init__(self, path, length=128):
        self.table = np.load(path, mmap_mode="r")
        self.length = length
        self.names = [f"accelerometer {axis}" for axis in self.CHANNELS]
        self.shape = [len(self.CHANNELS), length]

    def __len__(self):
        return len(self.table) - self.length

    def __getitem__(self, start):
        rows = np.array(self.table[start:start + self.length, :3], dtype=np.float32)
        return torch.from_numpy(rows.T)


def make(path):
    return DataLoader(Windows(path), batch_size=64, shuffle=True, num_workers=4)
