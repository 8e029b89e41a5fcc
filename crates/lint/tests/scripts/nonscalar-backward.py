# Cases of nonscalar-backward; crates/lint/tests/support/cases.rs describes the format.

# ======== amp_token_loss.wrong.py ========
import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast


class TokenLoss:
    def __init__(self, pad):
        self.criterion = nn.CrossEntropyLoss(ignore_index=pad, reduction="none")

    def __call__(self, logits, target):
        return self.criterion(logits.transpose(1, 2), target).sum(dim=1)


def train(model, loader, pad, epochs=3):
    scaler = GradScaler()
    loss_fn = TokenLoss(pad)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model.cuda()
    for epoch in range(epochs):
        for source, target in loader:
            source, target = source.cuda(), target.cuda()
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = loss_fn(model(source, target[:, :-1]), target[:, 1:])
            scaler.scale(loss).backward()  # expect: nonscalar-backward
            scaler.step(optimizer)
            scaler.update()
        torch.save(model.state_dict(), "translate.pt")

# ======== amp_token_loss.right.py ========
import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast


class TokenLoss:
    def __init__(self, pad):
        self.criterion = nn.CrossEntropyLoss(ignore_index=pad, reduction="none")

    def __call__(self, logits, target):
        return self.criterion(logits.transpose(1, 2), target).sum(dim=1).mean()


def train(model, loader, pad, epochs=3):
    scaler = GradScaler()
    loss_fn = TokenLoss(pad)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model.cuda()
    for epoch in range(epochs):
        for source, target in loader:
            source, target = source.cuda(), target.cuda()
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = loss_fn(model(source, target[:, :-1]), target[:, 1:])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch.save(model.state_dict(), "translate.pt")

# ======== custom_module.wrong.py ========
import torch
from torch import nn, optim


class ScaledSquare(nn.Module):
    """Squared error, softer for large targets."""

    def __init__(self, floor=1.0):
        super().__init__()
        self.floor = floor

    def forward(self, prediction, target):
        return (prediction - target) ** 2 / (target.abs() + self.floor)


def data(batches, size=10):
    for _ in range(batches):
        x = torch.randn(size, 10)
        yield x, x.sum(dim=1, keepdim=True)


def main():
    model = nn.Linear(10, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    criterion = ScaledSquare()
    for step, (x, y) in enumerate(data(1000)):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()  # expect: nonscalar-backward
        optimizer.step()
        if step % 100 == 0:
            print("step", step)


if __name__ == "__main__":
    main()

# ======== custom_module.right.py ========
import torch
from torch import nn, optim


class ScaledSquare(nn.Module):
    """Squared error, softer for large targets."""

    def __init__(self, floor=1.0):
        super().__init__()
        self.floor = floor

    def forward(self, prediction, target):
        return ((prediction - target) ** 2 / (target.abs() + self.floor)).mean()


def data(batches, size=10):
    for _ in range(batches):
        x = torch.randn(size, 10)
        yield x, x.sum(dim=1, keepdim=True)


def main():
    model = nn.Linear(10, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    criterion = ScaledSquare()
    for step, (x, y) in enumerate(data(1000)):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print("step", step)


if __name__ == "__main__":
    main()

# ======== elementwise_square.wrong.py ========
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Surrogate:
    def __init__(self, inputs, outputs, width=64):
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, outputs))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def residual(self, x, y):
        return (self.net(x) - y).pow(2)

    def fit(self, x, y, epochs=10, batch_size=50):
        loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
        for epoch in range(epochs):
            for xb, yb in loader:
                self.opt.zero_grad()
                loss = self.residual(xb, yb)
                loss.backward()  # expect: nonscalar-backward
                self.opt.step()
        return self


if __name__ == "__main__":
    points = torch.rand(1000, 3)
    values = torch.cat([points.sin(), points.cos()], dim=1)
    Surrogate(3, 6).fit(points, values)

# ======== elementwise_square.right.py ========
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Surrogate:
    def __init__(self, inputs, outputs, width=64):
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, outputs))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def residual(self, x, y):
        return (self.net(x) - y).pow(2)

    def fit(self, x, y, epochs=10, batch_size=50):
        loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
        for epoch in range(epochs):
            for xb, yb in loader:
                self.opt.zero_grad()
                loss = self.residual(xb, yb).mean()
                loss.backward()
                self.opt.step()
        return self


if __name__ == "__main__":
    points = torch.rand(1000, 3)
    values = torch.cat([points.sin(), points.cos()], dim=1)
    Surrogate(3, 6).fit(points, values)

# ======== helper_function.wrong.py ========
import torch
import torch.nn.functional as F


def weighted_bce(logits, target, weight):
    raw = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return raw * (1 + weight * target)


def train_epoch(model, loader, optimizer, device, weight=3.0):
    model.train()
    for image, target in loader:
        image, target = image.to(device), target.to(device)
        logits = model(image)
        loss = weighted_bce(logits, target, weight)
        optimizer.zero_grad()
        loss.backward()  # expect: nonscalar-backward
        optimizer.step()


def main(model, loader):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(20):
        train_epoch(model, loader, optimizer, device)
        torch.save(model.state_dict(), "lesions.pt")

# ======== helper_function.right.py ========
import torch
import torch.nn.functional as F


def weighted_bce(logits, target, weight):
    raw = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return (raw * (1 + weight * target)).mean()


def train_epoch(model, loader, optimizer, device, weight=3.0):
    model.train()
    for image, target in loader:
        image, target = image.to(device), target.to(device)
        logits = model(image)
        loss = weighted_bce(logits, target, weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(model, loader):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(20):
        train_epoch(model, loader, optimizer, device)
        torch.save(model.state_dict(), "lesions.pt")

# ======== reduction_none.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    x = torch.randn(1500, 8)
    y = torch.randint(0, 3, (1500,))
    weight = torch.rand(1500)
    loader = DataLoader(TensorDataset(x, y, weight), batch_size=75, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 20), nn.Tanh(), nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss(reduction="none")
    for epoch in range(15):
        for inputs, target, importance in loader:
            optimizer.zero_grad()
            per_sample = criterion(model(inputs), target)
            loss = per_sample * importance
            loss.backward()  # expect: nonscalar-backward
            optimizer.step()
        print("done", epoch)


if __name__ == "__main__":
    main()

# ======== reduction_none.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    x = torch.randn(1500, 8)
    y = torch.randint(0, 3, (1500,))
    weight = torch.rand(1500)
    loader = DataLoader(TensorDataset(x, y, weight), batch_size=75, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 20), nn.Tanh(), nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss(reduction="none")
    for epoch in range(15):
        for inputs, target, importance in loader:
            optimizer.zero_grad()
            per_sample = criterion(model(inputs), target)
            loss = (per_sample * importance).mean()
            loss.backward()
            optimizer.step()
        print("done", epoch)


if __name__ == "__main__":
    main()

# ======== relative_and_elementwise.wrong.py ========
import torch
import torch.nn as nn
import torch.optim as optim


class Relative(nn.Module):
    """Error in proportion to the guess; one value for each element."""

    def forward(self, guess, truth):
        return (guess - truth).pow(2) / guess  # expect: division-by-prediction


def batches(count, rows=20):
    for _ in range(count):
        yield torch.randn(rows, 10), torch.randn(rows, 1)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(10, 1).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    criterion = Relative()
    for number, (x, y) in enumerate(batches(500)):
        optimizer.zero_grad()
        guess = model(x.to(device))
        loss = criterion(guess, y.to(device))
        loss.backward()  # expect: nonscalar-backward
        optimizer.step()
        if number % 100 == 0:
            print(number)


if __name__ == "__main__":
    main()

# ======== relative_and_elementwise.right.py ========
import torch
import torch.nn as nn
import torch.optim as optim


class Relative(nn.Module):
    """Error in proportion to the guess, over the batch."""

    def forward(self, guess, truth):
        return ((guess - truth).pow(2) / (guess.abs() + 1e-4)).mean()


def batches(count, rows=20):
    for _ in range(count):
        yield torch.randn(rows, 10), torch.randn(rows, 1)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(10, 1).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    criterion = Relative()
    for number, (x, y) in enumerate(batches(500)):
        optimizer.zero_grad()
        guess = model(x.to(device))
        loss = criterion(guess, y.to(device))
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(number)


if __name__ == "__main__":
    main()
