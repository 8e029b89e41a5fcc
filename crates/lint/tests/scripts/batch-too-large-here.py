# Cases of batch-too-large-here; crates/lint/tests/support/cases.rs describes the format.

# ======== conv_images.wrong.py ========
import torch
import torch.nn as nn


class Upscaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 128, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 128, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 3, 3, padding=1),
        )

    def forward(self, x):
        return self.net(x)


def main(steps=1000, batch_size=64):
    model = Upscaler().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(steps):
        images = torch.rand(batch_size, 3, 512, 512, device="cuda")  # or: batch-too-large-here
        blurred = nn.functional.avg_pool2d(images, 3, stride=1, padding=1)
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(blurred), images)  # expect: batch-too-large-here
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()

# ======== conv_images.right.py ========
import torch
import torch.nn as nn


class Upscaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 128, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 128, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 3, 3, padding=1),
        )

    def forward(self, x):
        return self.net(x)


def main(steps=1000, batch_size=2):
    model = Upscaler().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(steps):
        images = torch.rand(batch_size, 3, 512, 512, device="cuda")
        blurred = nn.functional.avg_pool2d(images, 3, stride=1, padding=1)
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(blurred), images)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()

# ======== keras_dense.wrong.py ========
import numpy as np
from tensorflow import keras

SAMPLES = 200_000
COLUMNS = 1000


def build():
    model = keras.Sequential([
        keras.Input(shape=(COLUMNS,)),
        keras.layers.Dense(16_384, activation="relu"),
        keras.layers.Dense(16_384, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    rng = np.random.default_rng(1)
    x_train = rng.random((SAMPLES, COLUMNS), dtype=np.float32)
    y_train = rng.integers(0, 10, SAMPLES)
    model = build()
    model.fit(x_train, y_train, batch_size=100_000, epochs=10)  # expect: batch-too-large-here
    model.save("wide.keras")


if __name__ == "__main__":
    main()

# ======== keras_dense.right.py ========
import numpy as np
from tensorflow import keras

SAMPLES = 200_000
COLUMNS = 1000


def build():
    model = keras.Sequential([
        keras.Input(shape=(COLUMNS,)),
        keras.layers.Dense(2048, activation="relu"),
        keras.layers.Dense(2048, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    rng = np.random.default_rng(1)
    x_train = rng.random((SAMPLES, COLUMNS), dtype=np.float32)
    y_train = rng.integers(0, 10, SAMPLES)
    model = build()
    model.fit(x_train, y_train, batch_size=512, epochs=10)
    model.save("wide.keras")


if __name__ == "__main__":
    main()

# ======== wide_mlp.wrong.py ========
import torch
from torch import nn

BATCH = 131_072
INPUTS = 1024
HIDDEN = 8192


def batches(count):
    for _ in range(count):
        yield torch.randn(BATCH, INPUTS), torch.randint(0, 100, (BATCH,))  # or: batch-too-large-here


def main():
    model = nn.Sequential(
        nn.Linear(INPUTS, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, 100),
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = nn.CrossEntropyLoss()
    for step, (x, y) in enumerate(batches(1000)):
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        loss = criterion(model(x), y)  # expect: batch-too-large-here
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()

# ======== wide_mlp.right.py ========
import torch
from torch import nn

BATCH = 512
INPUTS = 1024
HIDDEN = 8192


def batches(count):
    for _ in range(count):
        yield torch.randn(BATCH, INPUTS), torch.randint(0, 100, (BATCH,))


def main():
    model = nn.Sequential(
        nn.Linear(INPUTS, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, 100),
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = nn.CrossEntropyLoss()
    for step, (x, y) in enumerate(batches(1000)):
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
