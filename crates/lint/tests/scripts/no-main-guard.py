# Cases of no-main-guard; crates/lint/tests/support/cases.rs describes the format.

# ======== call_at_bottom.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import STL10


def get_loader(split):
    data = STL10("data", split=split, download=True, transform=transforms.ToTensor())
    return DataLoader(data, batch_size=32, shuffle=True, num_workers=2)  # expect: no-main-guard


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


model = nn.Sequential(nn.Conv2d(3, 6, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 23 * 23, 10))
train(model, get_loader("train"), epochs=4)  # or: no-main-guard
torch.save(model.state_dict(), "stl.pt")

# ======== call_at_bottom.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import STL10


def get_loader(split):
    data = STL10("data", split=split, download=True, transform=transforms.ToTensor())
    return DataLoader(data, batch_size=32, shuffle=True, num_workers=2)


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


def main():
    model = nn.Sequential(nn.Conv2d(3, 6, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 23 * 23, 10))
    train(model, get_loader("train"), epochs=4)
    torch.save(model.state_dict(), "stl.pt")


if __name__ == "__main__":
    main()

# ======== flat_script.wrong.py ========
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader
from torchvision.datasets import FashionMNIST
from torchvision.transforms import ToTensor

device = "cuda" if torch.cuda.is_available() else "cpu"
train_set = FashionMNIST("data", train=True, download=True, transform=ToTensor())
train_loader = DataLoader(train_set, batch_size=100, shuffle=True, num_workers=4)  # expect: no-main-guard

net = nn.Sequential(
    nn.Flatten(),
    nn.Linear(28 * 28, 300),
    nn.ReLU(),
    nn.Linear(300, 10),
).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(8):
    running = 0.0
    for images, labels in train_loader:  # or: no-main-guard
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch}: {running / len(train_loader):.3f}")

torch.save(net.state_dict(), "fashion.pt")

# ======== flat_script.right.py ========
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader
from torchvision.datasets import FashionMNIST
from torchvision.transforms import ToTensor

if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_set = FashionMNIST("data", train=True, download=True, transform=ToTensor())
    train_loader = DataLoader(train_set, batch_size=100, shuffle=True, num_workers=4)

    net = nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, 300),
        nn.ReLU(),
        nn.Linear(300, 10),
    ).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    for epoch in range(8):
        running = 0.0
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(net(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: {running / len(train_loader):.3f}")

    torch.save(net.state_dict(), "fashion.pt")

# ======== settings_at_top.wrong.py ========
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

# ======== settings_at_top.right.py ========
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.datasets import EMNIST
from torchvision.transforms import ToTensor

BATCH = 200
WORKERS = 3
letters = EMNIST("data", split="letters", train=True, download=True, transform=ToTensor())
loader = DataLoader(letters, BATCH, shuffle=True, num_workers=WORKERS)


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


if __name__ == "__main__":
    main()
