import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load(path, device):
    blob = torch.load(path)
    images = blob["images"].float().div(255)
    labels = blob["labels"]
    return images.to(device), labels.to(device)  # expect: dataset-on-gpu


def main():
    device = torch.device("cuda")
    images, labels = load("train.pt", device)
    loader = DataLoader(TensorDataset(images, labels), batch_size=128, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(12):
        for image, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
