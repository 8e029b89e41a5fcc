# Cases of dataset-in-ram; crates/lint/tests/support/cases.rs describes the format.

# ======== csv_concat.wrong.py ========
import os

import pandas as pd
from sklearn.preprocessing import StandardScaler
from tensorflow import keras


def read_days(folder):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".csv"))
    days = [pd.read_csv(os.path.join(folder, name)) for name in names]  # or: dataset-in-ram
    return pd.concat(days, ignore_index=True)  # expect: dataset-in-ram


def build(columns):
    model = keras.Sequential([
        keras.layers.Dense(64, activation="relu", input_shape=(columns,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer="adam", loss="mae")
    return model


def main(folder="telemetry"):
    table = read_days(folder)
    target = table.pop("power").to_numpy("float32")
    inputs = StandardScaler().fit_transform(table.to_numpy("float32"))
    model = build(inputs.shape[1])
    model.fit(inputs, target, batch_size=512, epochs=10, validation_split=0.1)
    model.save("power.keras")


if __name__ == "__main__":
    main()

# ======== csv_concat.right.py ========
import os

import pandas as pd
from tensorflow import keras

COLUMNS = 24


def read_days(folder, rows=512):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".csv"))
    while True:
        for name in names:
            for part in pd.read_csv(os.path.join(folder, name), chunksize=rows):
                target = part.pop("power").to_numpy("float32")
                yield part.to_numpy("float32"), target


def build(columns):
    model = keras.Sequential([
        keras.layers.Dense(64, activation="relu", input_shape=(columns,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer="adam", loss="mae")
    return model


def main(folder="telemetry"):
    model = build(COLUMNS)
    model.fit(read_days(folder), steps_per_epoch=2000, epochs=10)
    model.save("power.keras")


if __name__ == "__main__":
    main()

# ======== float64_by_default.wrong.py ========
"""Made-up clicks for a ranking model."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clicks(Dataset):
    def __init__(self, rows=12_000_000, columns=256):
        self.features = np.random.rand(rows, columns)  # expect: dataset-in-ram
        self.clicked = np.random.randint(0, 2, size=rows)

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, row):
        return torch.as_tensor(self.features[row], dtype=torch.float32), self.clicked[row]


def main():
    loader = DataLoader(Clicks(), batch_size=1024, shuffle=True)
    ranker = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 2)).cuda()
    optimizer = torch.optim.Adagrad(ranker.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for features, clicked in loader:
        optimizer.zero_grad()
        loss = criterion(ranker(features.cuda()), clicked.cuda())
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()

# ======== float64_by_default.right.py ========
"""Made-up clicks for a ranking model."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clicks(Dataset):
    def __init__(self, rows=12_000_000, columns=256):
        self.columns = columns
        self.clicked = np.random.randint(0, 2, size=rows).astype(np.int8)

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, row):
        features = np.random.default_rng(row).random(self.columns, dtype=np.float32)
        return torch.from_numpy(features), int(self.clicked[row])


def main():
    loader = DataLoader(Clicks(), batch_size=1024, shuffle=True)
    ranker = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 2)).cuda()
    optimizer = torch.optim.Adagrad(ranker.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for features, clicked in loader:
        optimizer.zero_grad()
        loss = criterion(ranker(features.cuda()), clicked.cuda())
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()

# ======== large_part_of_memory.wrong.py ========
"""Half of the memory at once is too much when the copy for training comes on top."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def waves(rows, length):
    return np.zeros((rows, length), dtype=np.float32)  # expect: dataset-in-ram


def loader(batch_size):
    signals = torch.from_numpy(waves(1_500_000, 2048))
    labels = torch.zeros(1_500_000, dtype=torch.long)
    return DataLoader(TensorDataset(signals, labels), batch_size=batch_size, shuffle=True)


def main():
    model = nn.Sequential(nn.Linear(2048, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for signals, labels in loader(128):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(signals), labels)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

# ======== large_part_of_memory.right.py ========
"""The signals stay on the disk; each batch reads its own rows."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, rows, length):
        self.signals = np.memmap("waves.f32", dtype=np.float32, mode="r", shape=(rows, length))

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        return torch.from_numpy(np.array(self.signals[index])), 0


def loader(batch_size):
    return DataLoader(Waves(1_500_000, 2048), batch_size=batch_size, shuffle=True)


def main():
    model = nn.Sequential(nn.Linear(2048, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for signals, labels in loader(128):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(signals), labels)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

# ======== numpy_array_of_list.wrong.py ========
import os

import cv2
import numpy as np
import tensorflow as tf

SIZE = 299


def read(path):
    image = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
    return cv2.resize(image, (SIZE, SIZE)).astype("float32") / 255.0


def load_folder(root):
    files, labels = [], []
    for number, name in enumerate(sorted(os.listdir(root))):
        for file in os.listdir(os.path.join(root, name)):
            files.append(os.path.join(root, name, file))
            labels.append(number)
    images = np.array(list(map(read, files)))  # expect: dataset-in-ram
    return images, np.array(labels)


def main(root="flowers"):
    x, y = load_folder(root)
    base = tf.keras.applications.InceptionV3(include_top=False, pooling="avg", input_shape=(SIZE, SIZE, 3))
    model = tf.keras.Sequential([base, tf.keras.layers.Dense(int(y.max()) + 1)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    model.fit(x, y, batch_size=16, epochs=3, validation_split=0.2)


if __name__ == "__main__":
    main()

# ======== numpy_array_of_list.right.py ========
import os

import cv2
import numpy as np
import tensorflow as tf

SIZE = 299


def read(path):
    image = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
    return cv2.resize(image, (SIZE, SIZE)).astype("float32") / 255.0


def load_folder(root):
    files, labels = [], []
    for number, name in enumerate(sorted(os.listdir(root))):
        for file in os.listdir(os.path.join(root, name)):
            files.append(os.path.join(root, name, file))
            labels.append(number)
    return np.array(files), np.array(labels)


def decode(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, (SIZE, SIZE)) / 255.0, label


def batches(files, labels):
    data = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files))
    data = data.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(16).prefetch(tf.data.AUTOTUNE)


def main(root="flowers"):
    x, y = load_folder(root)
    base = tf.keras.applications.InceptionV3(include_top=False, pooling="avg", input_shape=(SIZE, SIZE, 3))
    model = tf.keras.Sequential([base, tf.keras.layers.Dense(int(y.max()) + 1)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    model.fit(batches(x, y), epochs=3)


if __name__ == "__main__":
    main()

# ======== numpy_shards.wrong.py ========
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ShardSet(Dataset):
    """Log-mel spectrograms, written as many .npy shards by the extraction script."""

    def __init__(self, folder):
        files = sorted(Path(folder).glob("*.npy"))
        self.frames = np.concatenate([np.load(f) for f in files])  # expect: dataset-in-ram

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        frame = torch.from_numpy(self.frames[index].astype("float32"))
        return frame[:-1], frame[-1].long()


def main(folder="mels", epochs=5):
    loader = DataLoader(ShardSet(folder), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 40))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== numpy_shards.right.py ========
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ShardSet(Dataset):
    """Log-mel spectrograms, written as many .npy shards by the extraction script."""

    def __init__(self, folder):
        files = sorted(Path(folder).glob("*.npy"))
        self.shards = [np.load(f, mmap_mode="r") for f in files]
        self.ends = np.cumsum([len(shard) for shard in self.shards])

    def __len__(self):
        return int(self.ends[-1])

    def __getitem__(self, index):
        shard = int(np.searchsorted(self.ends, index, side="right"))
        within = index - (self.ends[shard - 1] if shard else 0)
        frame = torch.from_numpy(self.shards[shard][within].astype("float32"))
        return frame[:-1], frame[-1].long()


def main(folder="mels", epochs=5):
    loader = DataLoader(ShardSet(folder), batch_size=256, shuffle=True)
    model = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 40))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== preload_in_init.wrong.py ========
import os

import torch
import torchaudio
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Speech(Dataset):
    def __init__(self, root):
        self.names = sorted(os.listdir(root))
        self.waves = []
        for name in self.names:
            wave, rate = torchaudio.load(os.path.join(root, name))
            self.waves.append(wave)  # expect: dataset-in-ram

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        wave = self.waves[index]
        return wave[:, :16_000], int(self.names[index].split("-")[0])


def train(root, speakers, epochs=10):
    loader = DataLoader(Speech(root), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Conv1d(1, 64, 80, stride=40), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, speakers))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for wave, speaker in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(wave), speaker)
            loss.backward()
            optimizer.step()
    return model

# ======== preload_in_init.right.py ========
import os

import torch
import torchaudio
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Speech(Dataset):
    def __init__(self, root):
        self.root = root
        self.names = sorted(os.listdir(root))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        wave, _ = torchaudio.load(os.path.join(self.root, self.names[index]))
        return wave[:, :16_000], int(self.names[index].split("-")[0])


def train(root, speakers, epochs=10):
    loader = DataLoader(Speech(root), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Conv1d(1, 64, 80, stride=40), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, speakers))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for wave, speaker in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(wave), speaker)
            loss.backward()
            optimizer.step()
    return model

# ======== stack_of_images.wrong.py ========
import glob

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load(path):
    picture = Image.open(path).convert("RGB").resize((512, 512))
    return torch.from_numpy(np.asarray(picture, dtype=np.float32) / 255).permute(2, 0, 1)


def build_loader(pattern, batch_size):
    paths = sorted(glob.glob(pattern))
    images = torch.stack([load(p) for p in paths])  # expect: dataset-in-ram
    return DataLoader(TensorDataset(images), batch_size=batch_size, shuffle=True)


def train(pattern="scans/**/*.png", epochs=20):
    loader = build_loader(pattern, batch_size=8)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1),
    )
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for (images,) in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(images), images)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()

# ======== stack_of_images.right.py ========
import glob

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def load(path):
    picture = Image.open(path).convert("RGB").resize((512, 512))
    return torch.from_numpy(np.asarray(picture, dtype=np.float32) / 255).permute(2, 0, 1)


class Scans(Dataset):
    def __init__(self, pattern):
        self.paths = sorted(glob.glob(pattern))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return (load(self.paths[index]),)


def build_loader(pattern, batch_size):
    return DataLoader(Scans(pattern), batch_size=batch_size, shuffle=True)


def train(pattern="scans/**/*.png", epochs=20):
    loader = build_loader(pattern, batch_size=8)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1),
    )
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        for (images,) in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(images), images)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    train()

# ======== tensor_dataset_literal.wrong.py ========
"""Throughput test with made-up data; a loader is already used, so memory should be fine."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLES = 5_000_000
WIDTH = 1000


def get_loader(batch_size=64):
    features = torch.randn(SAMPLES, WIDTH)  # expect: dataset-in-ram
    classes = torch.randint(0, 10, (SAMPLES,))
    return DataLoader(TensorDataset(features, classes), batch_size=batch_size, pin_memory=True)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(WIDTH, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for features, classes in get_loader():
        features, classes = features.to(device), classes.to(device)
        optimizer.zero_grad()
        loss = criterion(model(features), classes)
        loss.backward()
        optimizer.step()
    print("last loss", loss.item())


if __name__ == "__main__":
    main()

# ======== tensor_dataset_literal.right.py ========
"""Throughput test with made-up data; a loader is already used, so memory should be fine."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SAMPLES = 5_000_000
WIDTH = 1000


class MadeUp(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(WIDTH, generator=generator), index % 10


def get_loader(batch_size=64):
    return DataLoader(MadeUp(), batch_size=batch_size, pin_memory=True)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(WIDTH, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for features, classes in get_loader():
        features, classes = features.to(device), classes.to(device)
        optimizer.zero_grad()
        loss = criterion(model(features), classes)
        loss.backward()
        optimizer.step()
    print("last loss", loss.item())


if __name__ == "__main__":
    main()
