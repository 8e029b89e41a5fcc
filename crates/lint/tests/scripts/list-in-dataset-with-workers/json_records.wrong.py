import json

import torch
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, path, tokenizer, limit=256):
        with open(path) as lines:
            self.records = [json.loads(line) for line in lines]  # expect: list-in-dataset-with-workers
        self.tokenizer = tokenizer
        self.limit = limit

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        record = self.records[index]
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
