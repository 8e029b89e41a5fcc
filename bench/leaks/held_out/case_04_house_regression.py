import argparse
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, default_collate


def houses(n, dim=64, seed=0):
    """tabular rows with a smooth target"""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, dim, generator=g)
    y = x[:, :8].sum(1) + x[:, 8] * x[:, 9]
    return TensorDataset(x, y.unsqueeze(1))


def fetch(rows):
    time.sleep(0.05)      # the real rows come from a slow database
    return default_collate(rows)


def build(width):
    return nn.Sequential(nn.Linear(64, width), nn.GELU(),
                         nn.Linear(width, width), nn.GELU(),
                         nn.Linear(width, width), nn.GELU(),
                         nn.Linear(width, 1))


def train_one_epoch(net, loader, opt):
    net.train()
    running = 0.0
    for x, y in loader:
        opt.zero_grad()
        l = nn.functional.mse_loss(net(x), y)
        l.backward()
        opt.step()
        running += l.item()
    return running / len(loader)


def validate(net, loader):
    net.eval()
    preds, targets = [], []
    for b, (x, y) in enumerate(loader):
        preds.append(net(x))
        targets.append(y)
        if b % 20 == 0:
            print("   val batch", b, flush=True)
    preds, targets = torch.cat(preds), torch.cat(targets)
    ss_res = ((preds - targets) ** 2).sum()
    ss_tot = ((targets - targets.mean()) ** 2).sum()
    return (1 - ss_res / ss_tot).item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--width", type=int, default=512)
    p.add_argument("--batch-size", type=int, default=1024)
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)   # shared machine
    net = build(args.width)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    train_loader = DataLoader(houses(8 * 1024), args.batch_size, shuffle=True, collate_fn=fetch)
    val_loader = DataLoader(houses(96 * 1024, seed=7), args.batch_size, collate_fn=fetch)
    for epoch in range(1):
        tr = train_one_epoch(net, train_loader, opt)
        print("epoch", epoch, "train mse", tr)
        print("epoch", epoch, "R2", validate(net, val_loader))
