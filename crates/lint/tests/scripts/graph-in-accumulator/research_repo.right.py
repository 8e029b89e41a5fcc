"""Pretraining of a masked autoencoder on patches, research style."""
import argparse
import logging
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger("mae")


def get_args():
    parser = argparse.ArgumentParser("masked patches")
    parser.add_argument("--epochs", default=400, type=int)
    parser.add_argument("--batch_size", default=64, type=int)
    parser.add_argument("--mask", default=0.75, type=float)
    parser.add_argument("--lr", default=1.5e-4, type=float)
    parser.add_argument("--warmup", default=40, type=int)
    parser.add_argument("--output", default="runs/mae")
    return parser.parse_args()


class Patches(Dataset):
    def __len__(self):
        return 2000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(49, 48, generator=generator) + torch.linspace(0, 1, 48)


class MaskedAutoencoder(nn.Module):
    def __init__(self, patch=48, width=96, depth=2):
        super().__init__()
        self.embed = nn.Linear(patch, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.decode = nn.Linear(width, patch)

    def forward(self, patches, ratio):
        hidden = torch.rand(patches.shape[:2], device=patches.device) < ratio
        x = torch.where(hidden.unsqueeze(-1), self.token, self.embed(patches))
        out = self.decode(self.encoder(x))
        return F.mse_loss(out[hidden], patches[hidden])


def adjust(optimizer, epoch, args):
    if epoch < args.warmup:
        lr = args.lr * epoch / args.warmup
    else:
        lr = args.lr * 0.5 * (1 + math.cos(math.pi * (epoch - args.warmup) / (args.epochs - args.warmup)))
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def train_one_epoch(model, loader, optimizer, device, epoch, args):
    model.train(True)
    lr = adjust(optimizer, epoch, args)
    started, summed, seen = time.time(), 0.0, 0
    for it, patches in enumerate(loader):
        patches = patches.to(device, non_blocking=True)
        loss = model(patches, args.mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        summed = summed + loss.item() * patches.size(0)
        seen += patches.size(0)
        if it % 100 == 0:
            logger.info("epoch %d it %d lr %.2e %.1f s", epoch, it, lr, time.time() - started)
    return summed / seen


def main(args):
    os.makedirs(args.output, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = MaskedAutoencoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95))
    loader = DataLoader(Patches(), batch_size=args.batch_size, shuffle=True, drop_last=True)
    for epoch in range(args.epochs):
        logger.info("mean %.4f", train_one_epoch(model, loader, optimizer, device, epoch, args))
        torch.save(model.state_dict(), os.path.join(args.output, "last.pth"))


if __name__ == "__main__":
    main(get_args())
