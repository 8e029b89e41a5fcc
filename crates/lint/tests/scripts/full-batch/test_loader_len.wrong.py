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
