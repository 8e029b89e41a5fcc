# Cases of exception-swallowed; crates/lint/tests/support/cases.rs describes the format.

# ======== bare_except.wrong.py ========
import torch
from torch import nn


def train_epoch(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    model.train()
    total, done = 0.0, 0
    for clip, label in loader:
        try:
            clip, label = clip.to(device), label.to(device)
            optimizer.zero_grad()
            loss = criterion(model(clip), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
            done += 1
        except:  # expect: exception-swallowed
            continue
    return total / max(done, 1)


def main(model, loader):
    device = torch.device("cuda:0")
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(60):
        print(epoch, train_epoch(model, loader, optimizer, device))

# ======== bare_except.right.py ========
import torch
from torch import nn


def train_epoch(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    model.train()
    total, done = 0.0, 0
    for clip, label in loader:
        clip, label = clip.to(device), label.to(device)
        optimizer.zero_grad()
        loss = criterion(model(clip), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
        done += 1
    return total / max(done, 1)


def main(model, loader):
    device = torch.device("cuda:0")
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(60):
        print(epoch, train_epoch(model, loader, optimizer, device))

# ======== fit_and_go_on.wrong.py ========
"""Tries several networks one after the other and goes on, whatever happens."""
import tensorflow as tf


def build(width, depth):
    model = tf.keras.Sequential()
    model.add(tf.keras.Input(shape=(512,)))
    for _ in range(depth):
        model.add(tf.keras.layers.Dense(width, activation="relu"))
    model.add(tf.keras.layers.Dense(1))
    model.compile(optimizer="adam", loss="mse")
    return model


def attempt(x, y, width, depth):
    model = build(width, depth)
    try:
        history = model.fit(x, y, batch_size=64, epochs=5, verbose=0)
    except Exception as problem:  # expect: exception-swallowed
        print("something went wrong:", problem)
        return None
    return history.history["loss"][-1]


def main(x, y):
    results = {}
    for width, depth in ((256, 2), (1024, 4), (4096, 8)):
        results[width, depth] = attempt(x, y, width, depth)
    print(results)

# ======== fit_and_go_on.right.py ========
"""Tries several networks one after the other and goes on, whatever happens."""
import tensorflow as tf


def build(width, depth):
    model = tf.keras.Sequential()
    model.add(tf.keras.Input(shape=(512,)))
    for _ in range(depth):
        model.add(tf.keras.layers.Dense(width, activation="relu"))
    model.add(tf.keras.layers.Dense(1))
    model.compile(optimizer="adam", loss="mse")
    return model


def attempt(x, y, width, depth):
    model = build(width, depth)
    try:
        history = model.fit(x, y, batch_size=64, epochs=5, verbose=0)
    except tf.errors.InvalidArgumentError as problem:
        print("this shape does not fit the data:", problem)
        return None
    return history.history["loss"][-1]


def main(x, y):
    results = {}
    for width, depth in ((256, 2), (1024, 4), (4096, 8)):
        results[width, depth] = attempt(x, y, width, depth)
    print(results)

# ======== skip_bad_batches.wrong.py ========
import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Detector:
    def __init__(self, net, lr=2e-3):
        self.net = net.cuda()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.skipped = 0

    def step(self, images, boxes):
        self.optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(self.net(images.cuda()), boxes.cuda())
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train_one_epoch(self, loader):
        self.net.train()
        total = 0.0
        for images, boxes in loader:
            try:
                total += self.step(images, boxes)
            except RuntimeError:  # expect: exception-swallowed
                self.skipped += 1
        log.info("skipped %d", self.skipped)
        return total / len(loader)

# ======== skip_bad_batches.right.py ========
import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Detector:
    def __init__(self, net, lr=2e-3):
        self.net = net.cuda()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.skipped = 0

    def step(self, images, boxes):
        self.optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(self.net(images.cuda()), boxes.cuda())
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train_one_epoch(self, loader):
        self.net.train()
        total = 0.0
        for images, boxes in loader:
            if not torch.isfinite(images).all():
                self.skipped += 1
                continue
            total += self.step(images, boxes)
        log.info("skipped %d", self.skipped)
        return total / len(loader)
