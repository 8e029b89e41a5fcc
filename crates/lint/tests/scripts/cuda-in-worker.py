# Cases of cuda-in-worker; crates/lint/tests/support/cases.rs describes the format.

# ======== collate_device.wrong.py ========
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

device = torch.device("cuda")


def collate(items):
    tokens = pad_sequence([torch.tensor(tokens) for tokens, _ in items], batch_first=True)
    labels = torch.tensor([label for _, label in items])
    return tokens.to(device), labels  # expect: cuda-in-worker


class Mean(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, 100, padding_idx=0)
        self.out = nn.Linear(100, classes)

    def forward(self, tokens):
        return self.out(self.embed(tokens).mean(dim=1))


def main(dataset):
    loader = DataLoader(dataset, batch_size=64, shuffle=True, collate_fn=collate, num_workers=4)
    model = Mean(30_000, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(5):
        for tokens, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens), labels.to(device))
            loss.backward()
            optimizer.step()

# ======== collate_device.right.py ========
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

device = torch.device("cuda")


def collate(items):
    tokens = pad_sequence([torch.tensor(tokens) for tokens, _ in items], batch_first=True)
    labels = torch.tensor([label for _, label in items])
    return tokens, labels


class Mean(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, 100, padding_idx=0)
        self.out = nn.Linear(100, classes)

    def forward(self, tokens):
        return self.out(self.embed(tokens).mean(dim=1))


def main(dataset):
    loader = DataLoader(dataset, batch_size=64, shuffle=True, collate_fn=collate, num_workers=4)
    model = Mean(30_000, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(5):
        for tokens, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()

# ======== encoder_in_dataset.wrong.py ========
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, images, texts):
        self.images = np.load(images, mmap_mode="r")
        self.texts = np.load(texts, mmap_mode="r")
        self.device = "cuda:0"

    def __len__(self):
        return len(self.images)

    def _to_tensor(self, row):
        return torch.tensor(np.asarray(row), dtype=torch.float32, device=self.device)  # expect: cuda-in-worker

    def __getitem__(self, index):
        return self._to_tensor(self.images[index]), self._to_tensor(self.texts[index])  # or: cuda-in-worker


def contrastive(a, b, temperature=0.07):
    a = torch.nn.functional.normalize(a, dim=1)
    b = torch.nn.functional.normalize(b, dim=1)
    target = torch.arange(len(a), device=a.device)
    return torch.nn.functional.cross_entropy(a @ b.t() / temperature, target)


def train(left, right, optimizer, batch_size=256):
    loader = DataLoader(Pairs("images.npy", "texts.npy"), batch_size, shuffle=True, num_workers=4)
    for image, text in loader:
        optimizer.zero_grad()
        loss = contrastive(left(image.cuda()), right(text.cuda()))
        loss.backward()
        optimizer.step()

# ======== encoder_in_dataset.right.py ========
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, images, texts):
        self.images = np.load(images, mmap_mode="r")
        self.texts = np.load(texts, mmap_mode="r")

    def __len__(self):
        return len(self.images)

    def _to_tensor(self, row):
        return torch.tensor(np.asarray(row), dtype=torch.float32)

    def __getitem__(self, index):
        return self._to_tensor(self.images[index]), self._to_tensor(self.texts[index])


def contrastive(a, b, temperature=0.07):
    a = torch.nn.functional.normalize(a, dim=1)
    b = torch.nn.functional.normalize(b, dim=1)
    target = torch.arange(len(a), device=a.device)
    return torch.nn.functional.cross_entropy(a @ b.t() / temperature, target)


def train(left, right, optimizer, batch_size=256):
    loader = DataLoader(Pairs("images.npy", "texts.npy"), batch_size, shuffle=True, num_workers=4)
    for image, text in loader:
        optimizer.zero_grad()
        loss = contrastive(left(image.cuda()), right(text.cuda()))
        loss.backward()
        optimizer.step()

# ======== getitem_cuda.wrong.py ========
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, prefix):
        self.signals = np.load(prefix + "_x.npy", mmap_mode="r")
        self.labels = np.load(prefix + "_y.npy")

    def __len__(self):
        return self.labels.shape[0]

    def __getitem__(self, i):
        signal = torch.from_numpy(np.array(self.signals[i], dtype=np.float32))
        return signal.cuda(), int(self.labels[i])  # expect: cuda-in-worker


def main():
    loader = DataLoader(Spectra("spectra/train"), batch_size=64, shuffle=True, num_workers=4)
    model = nn.Sequential(nn.Linear(2048, 128), nn.ReLU(), nn.Linear(128, 6)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(20):
        for signal, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(signal.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()

# ======== getitem_cuda.right.py ========
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, prefix):
        self.signals = np.load(prefix + "_x.npy", mmap_mode="r")
        self.labels = np.load(prefix + "_y.npy")

    def __len__(self):
        return self.labels.shape[0]

    def __getitem__(self, i):
        signal = torch.from_numpy(np.array(self.signals[i], dtype=np.float32))
        return signal, int(self.labels[i])


def main():
    loader = DataLoader(Spectra("spectra/train"), batch_size=64, shuffle=True, num_workers=4)
    model = nn.Sequential(nn.Linear(2048, 128), nn.ReLU(), nn.Linear(128, 6)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(20):
        for signal, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(signal.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
