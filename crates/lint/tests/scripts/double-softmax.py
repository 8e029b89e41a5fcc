# Cases of double-softmax; crates/lint/tests/support/cases.rs describes the format.

# ======== keras_from_logits.wrong.py ========
import tensorflow as tf
from tensorflow import keras


def build(words, classes):
    inputs = keras.Input(shape=(None,), dtype="int64")
    x = keras.layers.Embedding(words, 128)(inputs)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dropout(0.3)(x)
    outputs = keras.layers.Dense(classes, activation="softmax")(x)  # or: double-softmax
    return keras.Model(inputs, outputs)


def prepare(texts, labels, vectorize):
    data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(32)
    data = data.map(lambda t, y: (vectorize(t), y), num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def main(texts, labels):
    vectorize = keras.layers.TextVectorization(max_tokens=20_000, output_sequence_length=200)
    vectorize.adapt(texts)
    model = build(20_000, 20)
    model.compile(  # or: double-softmax
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),  # expect: double-softmax
        metrics=["accuracy"],
    )
    model.fit(prepare(texts, labels, vectorize), epochs=8)

# ======== keras_from_logits.right.py ========
import tensorflow as tf
from tensorflow import keras


def build(words, classes):
    inputs = keras.Input(shape=(None,), dtype="int64")
    x = keras.layers.Embedding(words, 128)(inputs)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dropout(0.3)(x)
    outputs = keras.layers.Dense(classes, activation="softmax")(x)
    return keras.Model(inputs, outputs)


def prepare(texts, labels, vectorize):
    data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(32)
    data = data.map(lambda t, y: (vectorize(t), y), num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def main(texts, labels):
    vectorize = keras.layers.TextVectorization(max_tokens=20_000, output_sequence_length=200)
    vectorize.adapt(texts)
    model = build(20_000, 20)
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
    )
    model.fit(prepare(texts, labels, vectorize), epochs=8)

# ======== sequential_layer.wrong.py ========
import torch
from torch import nn, optim
from torchvision import datasets, transforms


def make_model(hidden=200):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
        nn.Softmax(dim=1),  # expect: double-softmax
    )


def main(epochs=5):
    data = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
    model = make_model()
    loss_function = nn.CrossEntropyLoss()  # or: double-softmax
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for image, digit in loader:
            optimizer.zero_grad()
            loss = loss_function(model(image), digit)  # or: double-softmax
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()

# ======== sequential_layer.right.py ========
import torch
from torch import nn, optim
from torchvision import datasets, transforms


def make_model(hidden=200):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )


def main(epochs=5):
    data = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
    model = make_model()
    loss_function = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for image, digit in loader:
            optimizer.zero_grad()
            loss = loss_function(model(image), digit)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()

# ======== softmax_layer.wrong.py ========
import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 5)
        self.pool = nn.AdaptiveMaxPool1d(8)
        self.fc = nn.Linear(16 * 8, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.conv(x)))
        return F.softmax(self.fc(x.flatten(1)), dim=1)  # expect: double-softmax


def fit(loader, device, epochs=25):
    net = TinyNet().to(device)
    criterion = nn.CrossEntropyLoss()  # or: double-softmax
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for beat, kind in loader:
            beat, kind = beat.to(device), kind.to(device)
            optimizer.zero_grad()
            loss = criterion(net(beat), kind)  # or: double-softmax
            loss.backward()
            optimizer.step()
    return net

# ======== softmax_layer.right.py ========
import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 5)
        self.pool = nn.AdaptiveMaxPool1d(8)
        self.fc = nn.Linear(16 * 8, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.conv(x)))
        return self.fc(x.flatten(1))


def fit(loader, device, epochs=25):
    net = TinyNet().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for beat, kind in loader:
            beat, kind = beat.to(device), kind.to(device)
            optimizer.zero_grad()
            loss = criterion(net(beat), kind)
            loss.backward()
            optimizer.step()
    return net
