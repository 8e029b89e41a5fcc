# Cases of bias-before-batchnorm; crates/lint/tests/support/cases.rs describes the format.

# ======== conv_block.wrong.py ========
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)  # expect: bias-before-batchnorm
        self.norm = nn.BatchNorm2d(outputs)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.stem = Block(3, 32)
        self.stages = nn.Sequential(Block(32, 64, 2), Block(64, 128, 2), Block(128, 256, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        x = self.stages(self.stem(x))
        return self.head(self.pool(x).flatten(1))


def step(net, optimizer, images, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item()

# ======== conv_block.right.py ========
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.stem = Block(3, 32)
        self.stages = nn.Sequential(Block(32, 64, 2), Block(64, 128, 2), Block(128, 256, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        x = self.stages(self.stem(x))
        return self.head(self.pool(x).flatten(1))


def step(net, optimizer, images, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item()

# ======== keras_layers.wrong.py ========
from tensorflow import keras
from tensorflow.keras import layers


def block(x, filters, stride=1):
    x = layers.Conv2D(filters, 3, strides=stride, padding="same")(x)  # expect: bias-before-batchnorm
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def build(shape=(64, 64, 3), classes=12):
    inputs = keras.Input(shape)
    x = layers.Rescaling(1.0 / 255)(inputs)
    for filters in (32, 64, 128):
        x = block(x, filters)
        x = block(x, filters, stride=2)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(classes, activation="softmax")(x)
    return keras.Model(inputs, outputs)


def main(train, val):
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(train, validation_data=val, epochs=25)
    model.save("blocks.keras")

# ======== keras_layers.right.py ========
from tensorflow import keras
from tensorflow.keras import layers


def block(x, filters, stride=1):
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def build(shape=(64, 64, 3), classes=12):
    inputs = keras.Input(shape)
    x = layers.Rescaling(1.0 / 255)(inputs)
    for filters in (32, 64, 128):
        x = block(x, filters)
        x = block(x, filters, stride=2)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(classes, activation="softmax")(x)
    return keras.Model(inputs, outputs)


def main(train, val):
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(train, validation_data=val, epochs=25)
    model.save("blocks.keras")

# ======== sequential_linear.wrong.py ========
import torch
from torch import nn


def head(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden),  # expect: bias-before-batchnorm
        nn.BatchNorm1d(hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, outputs, bias=False),
    )


class BarlowTwins(nn.Module):
    def __init__(self, backbone, width=512):
        super().__init__()
        self.backbone = backbone
        self.projector = head(width, 2048, 2048)
        self.norm = nn.BatchNorm1d(2048, affine=False)

    def forward(self, a, b):
        za = self.norm(self.projector(self.backbone(a)))
        zb = self.norm(self.projector(self.backbone(b)))
        c = za.t() @ zb / a.size(0)
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        return on + 0.005 * off


def train(model, loader, epochs, device="cuda"):
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for a, b in loader:
            optimizer.zero_grad()
            model(a.to(device), b.to(device)).backward()
            optimizer.step()

# ======== sequential_linear.right.py ========
import torch
from torch import nn


def head(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(inplace=True),
        nn.Linear(hidden, outputs, bias=False),
    )


class BarlowTwins(nn.Module):
    def __init__(self, backbone, width=512):
        super().__init__()
        self.backbone = backbone
        self.projector = head(width, 2048, 2048)
        self.norm = nn.BatchNorm1d(2048, affine=False)

    def forward(self, a, b):
        za = self.norm(self.projector(self.backbone(a)))
        zb = self.norm(self.projector(self.backbone(b)))
        c = za.t() @ zb / a.size(0)
        on = (torch.diagonal(c) - 1).pow(2).sum()
        off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        return on + 0.005 * off


def train(model, loader, epochs, device="cuda"):
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for a, b in loader:
            optimizer.zero_grad()
            model(a.to(device), b.to(device)).backward()
            optimizer.step()
