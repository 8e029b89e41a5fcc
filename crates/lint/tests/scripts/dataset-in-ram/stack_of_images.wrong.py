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
