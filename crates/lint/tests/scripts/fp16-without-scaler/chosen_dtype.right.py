import argparse

import torch
from torch import nn, optim


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-4)
    return parser.parse_args()


def train(model, loader, args):
    half = torch.bfloat16
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        total = 0.0
        for source, target in loader:
            source, target = source.cuda(), target.cuda()
            optimizer.zero_grad()
            with torch.amp.autocast(device_type="cuda", dtype=half):
                loss = criterion(model(source), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    from flow import make_loader, make_model

    train(make_model().cuda(), make_loader(), parse())
