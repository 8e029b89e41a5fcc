import torch
from torch import nn


def train(cell, readout, stream, k=20, lr=1e-3):
    optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()], lr=lr)
    h = torch.zeros(stream.size(1), cell.hidden_size)
    window = 0.0
    for t in range(stream.size(0) - 1):
        h = cell(stream[t], h)
        window = window + nn.functional.mse_loss(readout(h), stream[t + 1])
        if (t + 1) % k == 0:
            optimizer.zero_grad()
            (window / k).backward()
            optimizer.step()
            h = h.detach()
            window = 0.0


def main():
    cell, readout = nn.GRUCell(6, 48), nn.Linear(48, 6)
    train(cell, readout, torch.randn(2001, 16, 6))
    torch.save(cell.state_dict(), "cell.pt")


if __name__ == "__main__":
    main()
