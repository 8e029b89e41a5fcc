import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader as Loader
from torch.utils.data import Dataset


class Fake(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.x = rng.random((n, 20), dtype=np.float32)
        self.y = rng.random((n, 1), dtype=np.float32)

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.y[i])


def main():
    dataset = Fake(2_000_000)
    loader = Loader(dataset, batch_size=2_000_000)  # expect: full-batch
    model = nn.Sequential(nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 1)).cuda()
    optimizer = optim.Adam(model.parameters())
    loss_fn = nn.MSELoss()
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
