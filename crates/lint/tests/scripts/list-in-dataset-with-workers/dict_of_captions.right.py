import csv

import numpy as np
import torch
from torch.utils import data


class Captions(data.Dataset):
    """Pairs of feature row and caption; the captions come from one large table."""

    def __init__(self, table, features, vocabulary):
        self.features = features
        self.ids = np.zeros((features.shape[0], 30), dtype=np.int32)
        with open(table, newline="") as handle:
            for row in csv.DictReader(handle):
                for place, word in enumerate(row["caption"].split()[:30]):
                    self.ids[int(row["id"]), place] = vocabulary.get(word, 1)

    def __len__(self):
        return self.features.shape[0]

    def __getitem__(self, index):
        return torch.from_numpy(self.features[index]), torch.from_numpy(self.ids[index]).long()


def get_loader(table, features, vocabulary, batch_size=128):
    dataset = Captions(table, features, vocabulary)
    return data.DataLoader(dataset, batch_size, shuffle=True, num_workers=4)
