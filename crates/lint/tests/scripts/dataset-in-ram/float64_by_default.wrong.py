"""Made-up clicks for a ranking model."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clicks(Dataset):
    def __init__(self, rows=12_000_000, columns=256):
        self.features = np.random.rand(rows, columns)  # expect: dataset-in-ram
        self.clicked = np.random.randint(0, 2, size=rows)

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, row):
        return torch.as_tensor(self.features[row], dtype=torch.float32), self.clicked[row]


def main():
    loader = DataLoader(Clicks(), batch_size=1024, shuffle=True)
    ranker = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 2)).cuda()
    optimizer = torch.optim.Adagrad(ranker.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for features, clicked in loader:
        optimizer.zero_grad()
        loss = criterion(ranker(features.cuda()), clicked.cuda())
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
