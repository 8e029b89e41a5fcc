import json

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, path, tokenizer, limit=256):
        with open(path, "rb") as lines:
            self.packed = np.frombuffer(lines.read(), dtype=np.uint8)
        self.ends = np.flatnonzero(self.packed == ord("\n"))
        self.tokenizer = tokenizer
        self.limit = limit

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, index):
        begin = 0 if index == 0 else self.ends[index - 1] + 1
        record = json.loads(self.packed[begin : self.ends[index]].tobytes())
        ids = self.tokenizer.encode(record["text"])[: self.limit]
        ids = ids + [0] * (self.limit - len(ids))
        return torch.tensor(ids), torch.tensor(record["stars"] - 1)


def make_loader(path, tokenizer, batch_size=32):
    return DataLoader(
        Reviews(path, tokenizer),
        batch_size=batch_size,
        shuffle=True,
        num_workers=4,
        persistent_workers=True,
    )
