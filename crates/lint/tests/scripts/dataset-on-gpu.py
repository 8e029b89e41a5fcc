# Cases of dataset-on-gpu; crates/lint/tests/support/cases.rs describes the format.

# ======== dataset_constructor.wrong.py ========
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tracks(Dataset):
    def __init__(self, path, device):
        table = np.load(path)
        self.points = torch.tensor(table["points"], dtype=torch.float32, device=device)  # expect: dataset-on-gpu
        self.speeds = torch.tensor(table["speeds"], dtype=torch.float32)

    def __len__(self):
        return self.points.shape[0]

    def __getitem__(self, index):
        return self.points[index], self.speeds[index]


def fit(path, epochs=30):
    device = torch.device("cuda")
    loader = DataLoader(Tracks(path, device), batch_size=512, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(60, 128), nn.ReLU(), nn.Linear(128, 3)).to(device)
    loss_fn = nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(epochs):
        for points, speeds in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(points.to(device)), speeds.to(device))
            loss.backward()
            optimizer.step()
    return model

# ======== dataset_constructor.right.py ========
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tracks(Dataset):
    def __init__(self, path):
        table = np.load(path)
        self.points = torch.tensor(table["points"], dtype=torch.float32)
        self.speeds = torch.tensor(table["speeds"], dtype=torch.float32)

    def __len__(self):
        return self.points.shape[0]

    def __getitem__(self, index):
        return self.points[index], self.speeds[index]


def fit(path, epochs=30):
    device = torch.device("cuda")
    loader = DataLoader(Tracks(path), batch_size=512, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(60, 128), nn.ReLU(), nn.Linear(128, 3)).to(device)
    loss_fn = nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(epochs):
        for points, speeds in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(points.to(device)), speeds.to(device))
            loss.backward()
            optimizer.step()
    return model

# ======== device_keyword.wrong.py ========
import torch
import torch.nn as nn
import torch.optim as optim


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)


def main(chunk=50_000):
    everything = torch.randn(60_000_000, 10, device="cuda")  # expect: dataset-on-gpu
    field = Field().cuda()
    optimizer = optim.Adam(field.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    for epoch in range(20):
        for part in everything.split(chunk):
            optimizer.zero_grad()
            loss = criterion(field(part), part.norm(dim=1, keepdim=True))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== device_keyword.right.py ========
import torch
import torch.nn as nn
import torch.optim as optim


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)


def main(chunk=50_000):
    everything = torch.randn(6_000_000, 10)
    field = Field().cuda()
    optimizer = optim.Adam(field.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    for epoch in range(20):
        for part in everything.split(chunk):
            part = part.cuda(non_blocking=True)
            optimizer.zero_grad()
            loss = criterion(field(part), part.norm(dim=1, keepdim=True))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== loaded_then_moved.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load(path, device):
    blob = torch.load(path)
    images = blob["images"].float().div(255)
    labels = blob["labels"]
    return images.to(device), labels.to(device)  # expect: dataset-on-gpu


def main():
    device = torch.device("cuda")
    images, labels = load("train.pt", device)
    loader = DataLoader(TensorDataset(images, labels), batch_size=128, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(12):
        for image, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== loaded_then_moved.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load(path):
    blob = torch.load(path)
    return blob["images"], blob["labels"]


def main():
    device = torch.device("cuda")
    images, labels = load("train.pt")
    loader = DataLoader(TensorDataset(images, labels), batch_size=128, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(12):
        for image, label in loader:
            image, label = image.to(device).float().div(255), label.to(device)
            optimizer.zero_grad()
            loss = criterion(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== sliced_by_hand.wrong.py ========
import numpy as np
import torch
from torch import nn

device = torch.device("cuda")


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(columns, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def train(epochs=10, batch=2048):
    x = torch.from_numpy(np.load("features.npy")).float().to(device)  # expect: dataset-on-gpu
    y = torch.from_numpy(np.load("target.npy")).float()
    model = Model(x.shape[1]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        for start in range(0, len(x), batch):
            rows = order[start:start + batch]
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[rows]), y[rows].to(device))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()

# ======== sliced_by_hand.right.py ========
import numpy as np
import torch
from torch import nn

device = torch.device("cuda")


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(columns, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def train(epochs=10, batch=2048):
    x = torch.from_numpy(np.load("features.npy"))
    y = torch.from_numpy(np.load("target.npy")).float()
    model = Model(x.shape[1]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        for start in range(0, len(x), batch):
            rows = order[start:start + batch]
            optimizer.zero_grad()
            inputs = x[rows].float().to(device)
            loss = nn.functional.mse_loss(model(inputs), y[rows].to(device))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()

# ======== tensor_dataset_cuda.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ROWS = 2_500_000
FEATURES = 200


def synthetic():
    inputs = torch.randn(ROWS, FEATURES).cuda()  # expect: dataset-on-gpu
    weights = torch.linspace(-1, 1, FEATURES, device="cuda")
    targets = (inputs @ weights).unsqueeze(1)
    return TensorDataset(inputs, targets)


def train(epochs=3):
    loader = DataLoader(synthetic(), batch_size=4096, shuffle=True)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()

# ======== tensor_dataset_cuda.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ROWS = 300_000
FEATURES = 200


def synthetic():
    inputs = torch.randn(ROWS, FEATURES)
    weights = torch.linspace(-1, 1, FEATURES)
    targets = (inputs @ weights).unsqueeze(1)
    return TensorDataset(inputs, targets)


def train(epochs=3):
    loader = DataLoader(synthetic(), batch_size=4096, shuffle=True)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        for inputs, targets in loader:
            inputs, targets = inputs.cuda(), targets.cuda()
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()
