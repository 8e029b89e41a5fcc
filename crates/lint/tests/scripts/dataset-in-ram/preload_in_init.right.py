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
