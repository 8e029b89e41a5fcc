import csv

import torch
from torch.utils import data


class Captions(data.Dataset):
    """Pairs of feature row and caption; the captions come from one large table."""

    def __init__(self, table, features, vocabulary):
        self.features = features
        self.vocabulary = vocabulary
        with open(table, newline="") as handle:
            self.captions = {int(row["id"]): row["caption"].split() for row in csv.DictReader(handle)}  # expect: list-in-dataset-with-workers

    def __len__(self):
        return self.features.shape[0]

    def __getitem__(self, index):
        words = self.captions[index][:30]
        ids = torch.zeros(30, dtype=torch.long)
        for place, word in enumerate(words):
            ids[place] = self.vocabulary.get(word, 1)
        return torch.from_numpy(self.features[index]), ids


def get_loader(table, features, vocabulary, batch_size=128):
    dataset = Captions(table, features, vocabulary)
    return data.DataLoader(dataset, batch_size, shuffle=True, num_workers=4)
