import argparse
from collections import defaultdict

import torch
from torch import nn, optim
from torchvision import datasets, transforms
from tqdm import tqdm


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    return parser.parse_args()


def main():
    args = parse()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(train, batch_size=args.batch_size, shuffle=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    opt = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    history = defaultdict(list)
    for epoch in range(args.epochs):
        for step, (images, labels) in enumerate(tqdm(loader)):
            images, labels = images.to(device), labels.to(device)
            opt.zero_grad()
            loss = criterion(net(images), labels)
            loss.backward()
            opt.step()
            history["loss"].append(loss.item())
            history["lr"].append(opt.param_groups[0]["lr"])
        print(epoch, float(history["loss"][-1]))


if __name__ == "__main__":
    main()
