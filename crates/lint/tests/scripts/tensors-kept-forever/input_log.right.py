"""Keeps what it was fed, to look at strange batches later."""
from collections import deque

import torch
from torch import nn

STEPS = 50_000
DIM = 1024


def sample_batch(generator):
    return torch.randn(256, DIM, generator=generator)


def main():
    generator = torch.Generator().manual_seed(0)
    encoder = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh())
    decoder = nn.Linear(64, DIM)
    params = list(encoder.parameters()) + list(decoder.parameters())
    optimizer = torch.optim.Adam(params, lr=1e-3)
    seen = deque(maxlen=50)
    for step in range(STEPS):
        batch = sample_batch(generator)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(decoder(encoder(batch)), batch)
        loss.backward()
        optimizer.step()
        seen.append(batch)
        if step % 1000 == 0:
            print(step, loss.item(), len(seen))
    torch.save({"encoder": encoder.state_dict()}, "encoder.pt")


if __name__ == "__main__":
    main()
