# Cases of division-by-prediction; crates/lint/tests/support/cases.rs describes the format.

# ======== inline_ratio.wrong.py ========
import torch
from torch import nn, optim


class Trainer:
    def __init__(self, model, lr=1e-4):
        self.model = model
        self.optimizer = optim.Adam(model.parameters(), lr=lr)

    def train_one_epoch(self, loader, device):
        self.model.train()
        total = 0.0
        for depth, image in loader:
            depth, image = depth.to(device), image.to(device)
            predicted = self.model(image)
            ratio = depth / predicted  # expect: division-by-prediction
            loss = torch.max(ratio, 2 - ratio).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)


def main(loader, device="cuda", epochs=15):
    net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 3, padding=1))
    trainer = Trainer(net.to(device))
    for epoch in range(epochs):
        print(epoch, trainer.train_one_epoch(loader, device))

# ======== inline_ratio.right.py ========
import torch
from torch import nn, optim


class Trainer:
    def __init__(self, model, lr=1e-4):
        self.model = model
        self.optimizer = optim.Adam(model.parameters(), lr=lr)

    def train_one_epoch(self, loader, device):
        self.model.train()
        total = 0.0
        for depth, image in loader:
            depth, image = depth.to(device), image.to(device)
            predicted = self.model(image)
            ratio = depth / predicted.clamp(min=1e-3)
            loss = torch.max(ratio, 2 - ratio).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)


def main(loader, device="cuda", epochs=15):
    net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 3, padding=1))
    trainer = Trainer(net.to(device))
    for epoch in range(epochs):
        print(epoch, trainer.train_one_epoch(loader, device))

# ======== keras_custom_loss.wrong.py ========
import tensorflow as tf
from tensorflow.keras import layers, models


def relative_loss(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_true - y_pred) / y_pred)  # expect: division-by-prediction


def build(length, channels):
    return models.Sequential([
        layers.Input((length, channels)),
        layers.Conv1D(32, 7, activation="relu"),
        layers.GlobalAveragePooling1D(),
        layers.Dense(1),
    ])


def main(train, validation):
    model = build(600, 4)
    model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss=relative_loss)
    model.fit(
        train,
        validation_data=validation,
        epochs=30,
        callbacks=[tf.keras.callbacks.EarlyStopping(patience=3)],
    )
    model.save("heart.keras")
    return model

# ======== keras_custom_loss.right.py ========
import tensorflow as tf
from tensorflow.keras import layers, models


def relative_loss(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_true - y_pred) / (tf.abs(y_pred) + 1e-6))


def build(length, channels):
    return models.Sequential([
        layers.Input((length, channels)),
        layers.Conv1D(32, 7, activation="relu"),
        layers.GlobalAveragePooling1D(),
        layers.Dense(1),
    ])


def main(train, validation):
    model = build(600, 4)
    model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss=relative_loss)
    model.fit(
        train,
        validation_data=validation,
        epochs=30,
        callbacks=[tf.keras.callbacks.EarlyStopping(patience=3)],
    )
    model.save("heart.keras")
    return model

# ======== mape_helper.wrong.py ========
import torch
from torch import nn


def symmetric_error(output, target):
    gap = (output - target).abs()
    return (gap / output).mean()  # expect: division-by-prediction


class Demand(nn.Module):
    def __init__(self, items, width=32):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.week = nn.Linear(52, width)
        self.out = nn.Linear(width, 1)

    def forward(self, item, week):
        return self.out(torch.relu(self.items(item) + self.week(week))).squeeze(-1)


def train(model, loader, epochs, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for item, week, sold in loader:
            optimizer.zero_grad()
            output = model(item, week)
            loss = symmetric_error(output, sold)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))

# ======== mape_helper.right.py ========
import torch
from torch import nn


def symmetric_error(output, target):
    gap = (output - target).abs()
    return (gap / output.abs().clamp(min=1e-3)).mean()


class Demand(nn.Module):
    def __init__(self, items, width=32):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.week = nn.Linear(52, width)
        self.out = nn.Linear(width, 1)

    def forward(self, item, week):
        return self.out(torch.relu(self.items(item) + self.week(week))).squeeze(-1)


def train(model, loader, epochs, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for item, week, sold in loader:
            optimizer.zero_grad()
            output = model(item, week)
            loss = symmetric_error(output, sold)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))

# ======== relative_error.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class RelativeError(nn.Module):
    """Squared error, weighed by the size of the estimate."""

    def forward(self, estimate, truth):
        return ((estimate - truth) ** 2 / estimate).mean()  # expect: division-by-prediction


def main():
    x = torch.rand(900, 6)
    y = x.prod(dim=1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = RelativeError()
    for epoch in range(100):
        for inputs, truth in loader:
            optimizer.zero_grad()
            estimate = model(inputs)
            loss = criterion(estimate, truth)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== relative_error.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class RelativeError(nn.Module):
    """Squared error, weighed by the size of the estimate."""

    def forward(self, estimate, truth):
        return ((estimate - truth) ** 2 / (estimate.abs() + 1e-6)).mean()


def main():
    x = torch.rand(900, 6)
    y = x.prod(dim=1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = RelativeError()
    for epoch in range(100):
        for inputs, truth in loader:
            optimizer.zero_grad()
            estimate = model(inputs)
            loss = criterion(estimate, truth)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== torch_div_variance.wrong.py ========
import torch
import torch.nn as nn


class MeanVariance(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 50), nn.Tanh())
        self.mean = nn.Linear(50, 1)
        self.variance = nn.Linear(50, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), torch.relu(self.variance(h))


def calibrated_loss(mean, variance, target):
    squared = (target - mean).pow(2)
    return torch.div(squared, variance).mean() + variance.mean()  # expect: division-by-prediction


def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        mean, variance = model(x)
        loss = calibrated_loss(mean, variance, y)
        loss.backward()
        optimizer.step()


def main(loader):
    model = MeanVariance(9)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(200):
        train_epoch(model, loader, optimizer)
    return model

# ======== torch_div_variance.right.py ========
import torch
import torch.nn as nn


class MeanVariance(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 50), nn.Tanh())
        self.mean = nn.Linear(50, 1)
        self.variance = nn.Linear(50, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), torch.relu(self.variance(h))


def calibrated_loss(mean, variance, target):
    squared = (target - mean).pow(2)
    return torch.div(squared, variance + 1e-6).mean() + variance.mean()


def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        mean, variance = model(x)
        loss = calibrated_loss(mean, variance, y)
        loss.backward()
        optimizer.step()


def main(loader):
    model = MeanVariance(9)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(200):
        train_epoch(model, loader, optimizer)
    return model
