"""Nearest-neighbour evaluation of a self-supervised encoder."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Encoder(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x):
        return self.net(x)


def two_views(images):
    return images + 0.1 * torch.randn_like(images), images.flip(-1)


def train_one_epoch(encoder, loader, optimizer, device):
    encoder.train()
    for images, _ in loader:
        a, b = two_views(images.to(device))
        loss = 2 - 2 * F.cosine_similarity(encoder(a), encoder(b)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def bank_of(encoder, loader, device):
    encoder.eval()
    bank = {"features": [], "labels": []}
    for images, labels in loader:
        features = F.normalize(encoder(images.to(device)), dim=1)
        bank["features"].append(features)  # expect: outputs-kept-on-gpu
        bank["labels"].append(labels)
    return torch.cat(bank["features"]), torch.cat(bank["labels"])


@torch.no_grad()
def knn_accuracy(encoder, features, labels, loader, device):
    encoder.eval()
    features = features.cpu()
    hits, seen = 0, 0
    for images, truth in loader:
        query = F.normalize(encoder(images.to(device)), dim=1).cpu()
        nearest = (query @ features.t()).argmax(dim=1)
        hits += (labels[nearest] == truth).sum().item()
        seen += truth.numel()
    return hits / seen


def main(train_set, test_set, epochs=50):
    device = torch.device("cuda")
    encoder = Encoder().to(device)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
    train_loader = DataLoader(train_set, batch_size=256, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)
    for epoch in range(epochs):
        train_one_epoch(encoder, train_loader, optimizer, device)
        features, labels = bank_of(encoder, train_loader, device)
        print(epoch, knn_accuracy(encoder, features, labels, test_loader, device))
