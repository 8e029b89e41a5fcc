# Cases of outputs-kept-on-gpu; crates/lint/tests/support/cases.rs describes the format.

# ======== embed_corpus.wrong.py ========
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import models
from torchvision.datasets import ImageFolder
from torchvision.transforms import Compose, Resize, ToTensor


def build():
    backbone = models.resnet50(weights=None)
    backbone.fc = torch.nn.Identity()
    return backbone.cuda().eval()


def embed(folder):
    transform = Compose([Resize((224, 224)), ToTensor()])
    loader = DataLoader(ImageFolder(folder, transform), batch_size=128)
    backbone = build()
    features, targets = [], []
    with torch.no_grad():
        for images, labels in loader:
            vectors = F.normalize(backbone(images.cuda(non_blocking=True)), dim=1)
            features.append(vectors)  # expect: outputs-kept-on-gpu
            targets.append(labels)
    return torch.cat(features), torch.cat(targets)


if __name__ == "__main__":
    table, labels = embed("photos/train")
    torch.save({"table": table.cpu(), "labels": labels}, "table.pt")

# ======== embed_corpus.right.py ========
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import models
from torchvision.datasets import ImageFolder
from torchvision.transforms import Compose, Resize, ToTensor


def build():
    backbone = models.resnet50(weights=None)
    backbone.fc = torch.nn.Identity()
    return backbone.cuda().eval()


def embed(folder):
    transform = Compose([Resize((224, 224)), ToTensor()])
    loader = DataLoader(ImageFolder(folder, transform), batch_size=128)
    backbone = build()
    features, targets = [], []
    with torch.no_grad():
        for images, labels in loader:
            vectors = F.normalize(backbone(images.cuda(non_blocking=True)), dim=1)
            features.append(vectors.cpu())
            targets.append(labels)
    return torch.cat(features), torch.cat(targets)


if __name__ == "__main__":
    table, labels = embed("photos/train")
    torch.save({"table": table, "labels": labels}, "table.pt")

# ======== feature_bank.wrong.py ========
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

# ======== feature_bank.right.py ========
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
        bank["features"].append(features.cpu())
        bank["labels"].append(labels)
    return torch.cat(bank["features"]), torch.cat(bank["labels"])


@torch.no_grad()
def knn_accuracy(encoder, features, labels, loader, device):
    encoder.eval()
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

# ======== method_predict.wrong.py ========
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader


class Inference:
    def __init__(self, model: nn.Module, device: torch.device = torch.device("cuda")):
        self.model = model.to(device).eval()
        self.device = device

    @torch.inference_mode()
    def logits(self, loader: DataLoader):
        collected = {"logits": [], "ids": []}
        for ids, volume in loader:
            out = self.model(volume.to(self.device))
            collected["logits"].append(out)  # expect: outputs-kept-on-gpu
            collected["ids"].extend(ids.tolist())
        return torch.cat(collected["logits"]).cpu().numpy(), collected["ids"]


def main(model, loader):
    runner = Inference(model)
    logits, ids = runner.logits(loader)
    order = np.argsort(ids)
    np.save("logits.npy", logits[order])

# ======== method_predict.right.py ========
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader


class Inference:
    def __init__(self, model: nn.Module, device: torch.device = torch.device("cuda")):
        self.model = model.to(device).eval()
        self.device = device

    @torch.inference_mode()
    def logits(self, loader: DataLoader):
        collected = {"logits": [], "ids": []}
        for ids, volume in loader:
            out = self.model(volume.to(self.device))
            collected["logits"].append(out.cpu())
            collected["ids"].extend(ids.tolist())
        return torch.cat(collected["logits"]).numpy(), collected["ids"]


def main(model, loader):
    runner = Inference(model)
    logits, ids = runner.logits(loader)
    order = np.argsort(ids)
    np.save("logits.npy", logits[order])

# ======== segmentation_masks.wrong.py ========
import torch
import torch.nn as nn
from tqdm import tqdm


def validate(net, loader, criterion):
    device = torch.device("cuda:0")
    net.to(device)
    net.eval()
    masks, truths, loss_sum = [], [], 0.0
    with torch.no_grad():
        for image, mask in tqdm(loader):
            output = net(image.to(device))
            loss_sum += criterion(output, mask.to(device)).item()
            masks += [torch.sigmoid(output)]  # expect: outputs-kept-on-gpu
            truths += [mask]
    guess = torch.cat(masks).cpu() > 0.5
    truth = torch.cat(truths) > 0.5
    overlap = (guess & truth).sum().item()
    return loss_sum / len(loader), 2 * overlap / max(1, (guess.sum() + truth.sum()).item())


def report(net, loader):
    loss, dice = validate(net, loader, nn.BCEWithLogitsLoss())
    print(f"loss {loss:.4f} dice {dice:.4f}")

# ======== segmentation_masks.right.py ========
import torch
import torch.nn as nn
from tqdm import tqdm


def validate(net, loader, criterion):
    device = torch.device("cuda:0")
    net.to(device)
    net.eval()
    masks, truths, loss_sum = [], [], 0.0
    with torch.no_grad():
        for image, mask in tqdm(loader):
            output = net(image.to(device))
            loss_sum += criterion(output, mask.to(device)).item()
            masks += [(torch.sigmoid(output) > 0.5).cpu()]
            truths += [mask]
    guess = torch.cat(masks)
    truth = torch.cat(truths) > 0.5
    overlap = (guess & truth).sum().item()
    return loss_sum / len(loader), 2 * overlap / max(1, (guess.sum() + truth.sum()).item())


def report(net, loader):
    loss, dice = validate(net, loader, nn.BCEWithLogitsLoss())
    print(f"loss {loss:.4f} dice {dice:.4f}")
