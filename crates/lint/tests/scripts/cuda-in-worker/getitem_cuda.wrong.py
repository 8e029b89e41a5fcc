import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, prefix):
        self.signals = np.load(prefix + "_x.npy", mmap_mode="r")
        self.labels = np.load(prefix + "_y.npy")

    def __len__(self):
        return self.labels.shape[0]

    def __getitem__(self, i):
        signal = torch.from_numpy(np.array(self.signals[i], dtype=np.float32))
        return signal.cuda(), int(self.labels[i])  # expect: cuda-in-worker


def main():
    loader = DataLoader(Spectra("spectra/train"), batch_size=64, shuffle=True, num_workers=4)
    model = nn.Sequential(nn.Linear(2048, 128), nn.ReLU(), nn.Linear(128, 6)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(20):
        for signal, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(signal.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
