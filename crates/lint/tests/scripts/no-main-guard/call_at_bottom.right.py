import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import STL10


def get_loader(split):
    data = STL10("data", split=split, download=True, transform=transforms.ToTensor())
    return DataLoader(data, batch_size=32, shuffle=True, num_workers=2)


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


def main():
    model = nn.Sequential(nn.Conv2d(3, 6, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 23 * 23, 10))
    train(model, get_loader("train"), epochs=4)
    torch.save(model.state_dict(), "stl.pt")


if __name__ == "__main__":
    main()
