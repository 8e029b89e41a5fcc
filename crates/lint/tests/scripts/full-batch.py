# Cases of full-batch; crates/lint/tests/support/cases.rs describes the format.

# ======== everything_on_the_card.wrong.py ========
"""Both at once: the data moves to the card in one piece and goes through the model in one piece."""
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.fc = nn.Linear(columns, 1)

    def forward(self, x):
        return self.fc(x)


def main():
    rows, columns = 12_000_000, 10
    samples = torch.randn(rows, columns).cuda()  # expect: dataset-on-gpu
    net = Net(columns).cuda()
    optimizer = optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for epoch in range(50):
        optimizer.zero_grad()
        out = net(samples)  # expect: full-batch
        loss = criterion(out, torch.zeros_like(out))
        loss.backward()
        optimizer.step()
        if epoch % 5 == 0:
            print("epoch", epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== everything_on_the_card.right.py ========
"""The data stays in memory; the card gets a piece at a time."""
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.fc = nn.Linear(columns, 1)

    def forward(self, x):
        return self.fc(x)


def main():
    rows, columns = 12_000_000, 10
    samples = torch.randn(rows, columns)
    net = Net(columns).cuda()
    optimizer = optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for epoch in range(50):
        for part in samples.split(8192):
            optimizer.zero_grad()
            out = net(part.cuda())
            loss = criterion(out, torch.zeros_like(out))
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print("epoch", epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== keras_fit_len.wrong.py ========
import numpy as np
from tensorflow import keras


def load():
    archive = np.load("galaxies.npz")
    return archive["images"], archive["classes"]


def build(shape, classes):
    inputs = keras.Input(shape=shape)
    x = keras.layers.Rescaling(1 / 255)(inputs)
    x = keras.layers.Conv2D(32, 3, activation="relu")(x)
    x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.Conv2D(64, 3, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(classes, activation="softmax")(x))


def main():
    x_train, y_train = load()
    model = build(x_train.shape[1:], 10)
    model.compile(optimizer="rmsprop", loss="sparse_categorical_crossentropy")
    model.fit(x_train, y_train, batch_size=len(x_train), epochs=50)  # expect: full-batch
    model.save("galaxies.keras")


if __name__ == "__main__":
    main()

# ======== keras_fit_len.right.py ========
import numpy as np
from tensorflow import keras


def load():
    archive = np.load("galaxies.npz")
    return archive["images"], archive["classes"]


def build(shape, classes):
    inputs = keras.Input(shape=shape)
    x = keras.layers.Rescaling(1 / 255)(inputs)
    x = keras.layers.Conv2D(32, 3, activation="relu")(x)
    x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.Conv2D(64, 3, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(classes, activation="softmax")(x))


def main():
    x_train, y_train = load()
    model = build(x_train.shape[1:], 10)
    model.compile(optimizer="rmsprop", loss="sparse_categorical_crossentropy")
    model.fit(x_train, y_train, batch_size=64, epochs=50)
    model.save("galaxies.keras")


if __name__ == "__main__":
    main()

# ======== len_of_dataset.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import CIFAR10


def main():
    device = torch.device("cuda:0")
    dataset = CIFAR10("data", train=True, download=True, transform=transforms.ToTensor())
    loader = DataLoader(dataset, batch_size=len(dataset), shuffle=True)  # expect: full-batch
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(10):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()

# ======== len_of_dataset.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import CIFAR10


def main():
    device = torch.device("cuda:0")
    dataset = CIFAR10("data", train=True, download=True, transform=transforms.ToTensor())
    loader = DataLoader(dataset, batch_size=256, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(10):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()

# ======== literal_equals_length.wrong.py ========
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader as Loader
from torch.utils.data import Dataset


class Fake(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.x = rng.random((n, 20), dtype=np.float32)
        self.y = rng.random((n, 1), dtype=np.float32)

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.y[i])


def main():
    dataset = Fake(2_000_000)
    loader = Loader(dataset, batch_size=2_000_000)  # expect: full-batch
    model = nn.Sequential(nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 1)).cuda()
    optimizer = optim.Adam(model.parameters())
    loss_fn = nn.MSELoss()
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== literal_equals_length.right.py ========
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader as Loader
from torch.utils.data import Dataset


class Fake(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.x = rng.random((n, 20), dtype=np.float32)
        self.y = rng.random((n, 1), dtype=np.float32)

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.y[i])


def main():
    dataset = Fake(2_000_000)
    loader = Loader(dataset, batch_size=2_000, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 1)).cuda()
    optimizer = optim.Adam(model.parameters())
    loss_fn = nn.MSELoss()
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== test_loader_len.wrong.py ========
"""Evaluates during training on everything at once."""
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import SVHN
from torchvision.transforms import ToTensor


def loaders():
    train = SVHN("data", split="train", download=True, transform=ToTensor())
    test = SVHN("data", split="test", download=True, transform=ToTensor())
    return (
        DataLoader(train, batch_size=128, shuffle=True),
        DataLoader(test, batch_size=len(test)),  # expect: full-batch
    )


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    hits = 0
    for image, label in loader:
        hits += (model(image.to(device)).argmax(1).cpu() == label).sum().item()
    return hits / len(loader.dataset)


def main(device="cuda"):
    train_loader, test_loader = loaders()
    model = nn.Sequential(nn.Conv2d(3, 64, 5), nn.ReLU(), nn.Conv2d(64, 64, 5), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 576, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(5):
        model.train()
        for image, label in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image.to(device)), label.to(device))
            loss.backward()
            optimizer.step()
        print(epoch, accuracy(model, test_loader, device))


if __name__ == "__main__":
    main()

# ======== test_loader_len.right.py ========
"""Evaluates during training on everything at once."""
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import SVHN
from torchvision.transforms import ToTensor


def loaders():
    train = SVHN("data", split="train", download=True, transform=ToTensor())
    test = SVHN("data", split="test", download=True, transform=ToTensor())
    return (
        DataLoader(train, batch_size=128, shuffle=True),
        DataLoader(test, batch_size=256),
    )


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    hits = 0
    for image, label in loader:
        hits += (model(image.to(device)).argmax(1).cpu() == label).sum().item()
    return hits / len(loader.dataset)


def main(device="cuda"):
    train_loader, test_loader = loaders()
    model = nn.Sequential(nn.Conv2d(3, 64, 5), nn.ReLU(), nn.Conv2d(64, 64, 5), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 576, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(5):
        model.train()
        for image, label in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image.to(device)), label.to(device))
            loss.backward()
            optimizer.step()
        print(epoch, accuracy(model, test_loader, device))


if __name__ == "__main__":
    main()

# ======== tf_batch_of_everything.wrong.py ========
import tensorflow as tf

ROWS = 4_000_000


def build():
    return tf.keras.Sequential([
        tf.keras.layers.Dense(32, activation="relu", input_shape=(30,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1),
    ])


def make(rows=ROWS):
    x = tf.random.normal((rows, 30))
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((x, y))
    return data.batch(rows).prefetch(tf.data.AUTOTUNE)  # expect: full-batch


def main():
    model = build()
    model.compile(optimizer="adam", loss="mse")
    history = model.fit(make(), epochs=20, verbose=2)
    print(min(history.history["loss"]))


if __name__ == "__main__":
    main()

# ======== tf_batch_of_everything.right.py ========
import tensorflow as tf

ROWS = 4_000_000


def build():
    return tf.keras.Sequential([
        tf.keras.layers.Dense(32, activation="relu", input_shape=(30,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1),
    ])


def make(rows=ROWS):
    x = tf.random.normal((rows, 30))
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((x, y))
    return data.batch(1024).prefetch(tf.data.AUTOTUNE)


def main():
    model = build()
    model.compile(optimizer="adam", loss="mse")
    history = model.fit(make(), epochs=20, verbose=2)
    print(min(history.history["loss"]))


if __name__ == "__main__":
    main()

# ======== whole_tensor_forward.wrong.py ========
"""Trains on the whole table in every step; it worked with the first thousand rows."""
import torch
from torch import nn

ROWS = 8_000_000


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.hidden = nn.Linear(12, 64)
        self.last = nn.Linear(64, 1)

    def forward(self, x):
        return self.last(torch.relu(self.hidden(x)))


def main(steps=100):
    table = torch.rand(ROWS, 12)
    target = table.sum(dim=1, keepdim=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for step in range(steps):
        optimizer.zero_grad()
        output = net(table)  # expect: full-batch
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()

# ======== whole_tensor_forward.right.py ========
"""Trains on the whole table in every step; it worked with the first thousand rows."""
import torch
from torch import nn

ROWS = 8_000_000


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.hidden = nn.Linear(12, 64)
        self.last = nn.Linear(64, 1)

    def forward(self, x):
        return self.last(torch.relu(self.hidden(x)))


def main(steps=100):
    table = torch.rand(ROWS, 12)
    target = table.sum(dim=1, keepdim=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for step in range(steps):
        rows = torch.randint(0, ROWS, (4096,))
        optimizer.zero_grad()
        output = net(table[rows])
        loss = criterion(output, target[rows])
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
