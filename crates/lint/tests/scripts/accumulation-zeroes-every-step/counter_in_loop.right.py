import argparse

import torch
from torch import nn, optim


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--accum", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def train(args, net, loader, device):
    opt = optim.Adam(net.parameters(), lr=args.lr)
    loss_fn = nn.SmoothL1Loss()
    micro = 0
    opt.zero_grad()
    for epoch in range(10):
        for image, box in loader:
            loss = loss_fn(net(image.to(device)), box.to(device)) / args.accum
            loss.backward()
            micro += 1
            if micro % args.accum == 0:
                opt.step()
                opt.zero_grad()
        if micro % args.accum != 0:
            opt.step()
            opt.zero_grad()
            micro = 0
        torch.save(net.state_dict(), "boxes.pt")


if __name__ == "__main__":
    from detector import build_loader, build_net

    train(get_args(), build_net().cuda(), build_loader(), torch.device("cuda"))
