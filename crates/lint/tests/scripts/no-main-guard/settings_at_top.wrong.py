import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.datasets import EMNIST
from torchvision.transforms import ToTensor

BATCH = 200
WORKERS = 3
letters = EMNIST("data", split="letters", train=True, download=True, transform=ToTensor())
loader = DataLoader(letters, BATCH, shuffle=True, num_workers=WORKERS)  # expect: no-main-guard


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(784, 128)
        self.b = nn.Linear(128, 27)

    def forward(self, x):
        return self.b(F.relu(self.a(x.flatten(1))))


def main():
    net = Letters()
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(3):
        for image, label in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


main()  # or: no-main-guard
