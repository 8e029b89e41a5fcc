# Cases of excess-per-step-work; crates/lint/tests/support/cases.rs describes the format.

# ======== anomaly_left_on.wrong.py ========
import torch
from torch import nn


def fit(model, loader, epochs, device="cuda"):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.PoissonNLLLoss()
    model.to(device).train()
    for epoch in range(epochs):
        total = 0.0
        for counts, covariates in loader:
            counts, covariates = counts.to(device), covariates.to(device)
            optimizer.zero_grad()
            with torch.autograd.detect_anomaly():  # expect: excess-per-step-work
                loss = criterion(model(covariates), counts)
                loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"{epoch}: {total / len(loader):.4f}")
    return model


def main(loader):
    model = nn.Sequential(nn.Linear(30, 60), nn.Softplus(), nn.Linear(60, 1))
    fit(model, loader, epochs=50)
    torch.save(model.state_dict(), "counts.pt")

# ======== anomaly_left_on.right.py ========
import torch
from torch import nn


def fit(model, loader, epochs, device="cuda"):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.PoissonNLLLoss()
    model.to(device).train()
    for epoch in range(epochs):
        total = 0.0
        for counts, covariates in loader:
            counts, covariates = counts.to(device), covariates.to(device)
            optimizer.zero_grad()
            loss = criterion(model(covariates), counts)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"{epoch}: {total / len(loader):.4f}")
    return model


def main(loader):
    model = nn.Sequential(nn.Linear(30, 60), nn.Softplus(), nn.Linear(60, 1))
    fit(model, loader, epochs=50)
    torch.save(model.state_dict(), "counts.pt")

# ======== collect_garbage.wrong.py ========
"""Memory seemed to grow, so the collector is called by hand."""
import gc

import tensorflow as tf


def run_epoch(model, optimizer, loss_fn, dataset):
    mean = tf.keras.metrics.Mean()
    for images, labels in dataset:
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, model(images, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        mean.update_state(loss)
        gc.collect()  # expect: excess-per-step-work
    return float(mean.result())


def main(dataset, epochs=15):
    model = tf.keras.applications.MobileNetV2(weights=None, classes=50, classifier_activation=None)
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(epochs):
        print(epoch, run_epoch(model, optimizer, loss_fn, dataset))
    model.save("mobile.keras")

# ======== collect_garbage.right.py ========
import tensorflow as tf


def run_epoch(model, optimizer, loss_fn, dataset):
    mean = tf.keras.metrics.Mean()
    for images, labels in dataset:
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, model(images, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        mean.update_state(loss)
    return float(mean.result())


def main(dataset, epochs=15):
    model = tf.keras.applications.MobileNetV2(weights=None, classes=50, classifier_activation=None)
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(epochs):
        print(epoch, run_epoch(model, optimizer, loss_fn, dataset))
    model.save("mobile.keras")

# ======== empty_cache_each_step.wrong.py ========
import torch
from torch import nn


class Segmenter:
    def __init__(self, net, device="cuda"):
        self.net = net.to(device)
        self.device = device
        self.criterion = nn.CrossEntropyLoss(ignore_index=255)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def train_one_epoch(self, loader):
        self.net.train()
        total = 0.0
        for images, masks in loader:
            images, masks = images.to(self.device), masks.to(self.device)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.net(images), masks)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            torch.cuda.empty_cache()  # expect: excess-per-step-work
        return total / len(loader)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            mean = self.train_one_epoch(loader)
            print(f"{epoch:3d} {mean:.4f}")

# ======== empty_cache_each_step.right.py ========
import torch
from torch import nn


class Segmenter:
    def __init__(self, net, device="cuda"):
        self.net = net.to(device)
        self.device = device
        self.criterion = nn.CrossEntropyLoss(ignore_index=255)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def train_one_epoch(self, loader):
        self.net.train()
        total = 0.0
        for images, masks in loader:
            images, masks = images.to(self.device), masks.to(self.device)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.net(images), masks)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            mean = self.train_one_epoch(loader)
            print(f"{epoch:3d} {mean:.4f}")

# ======== print_each_step.wrong.py ========
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SimpleNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, 40)
        self.fc2 = nn.Linear(40, outputs)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs, targets = torch.randn(100_000, 10), torch.randn(100_000, 1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=20, shuffle=True)
    net = SimpleNet(10, 1).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for epoch in range(10):
        for batch_idx, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} batch {batch_idx} loss {loss}")  # expect: excess-per-step-work


if __name__ == "__main__":
    main()

# ======== print_each_step.right.py ========
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SimpleNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, 40)
        self.fc2 = nn.Linear(40, outputs)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs, targets = torch.randn(100_000, 10), torch.randn(100_000, 1)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=20, shuffle=True)
    net = SimpleNet(10, 1).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for epoch in range(10):
        for batch_idx, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            if batch_idx % 500 == 0:
                print(f"epoch {epoch} batch {batch_idx} loss {loss.item()}")


if __name__ == "__main__":
    main()
