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
