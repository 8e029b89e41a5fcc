import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

CONFIG = {
    "batch_size": 256,
    "num_workers": 4,
    "lr": 0.1,
    "epochs": 30,
}


def get_loader(train):
    tf = [transforms.ToTensor()]
    if train:
        tf.insert(0, transforms.RandomHorizontalFlip())
    data = datasets.CIFAR100("data", train=train, download=True, transform=transforms.Compose(tf))
    return DataLoader(data, batch_size=CONFIG["batch_size"], num_workers=CONFIG["num_workers"])


def main():
    loader = get_loader(train=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 100)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"])
    criterion = nn.CrossEntropyLoss()
    for epoch in range(CONFIG["epochs"]):
        for image, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(image.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
