"""How large do the outputs get while the input drifts? Nothing is trained here."""

import torch
from torch import nn


class Probe:
    def __init__(self, width=1024):
        self.net = nn.Sequential(nn.Linear(256, width), nn.GELU(), nn.Linear(width, 1))
        self.drift = torch.zeros(256)

    def measure(self, rounds):
        levels = []
        for turn in range(rounds):
            self.drift += 0.01 * torch.randn(256)
            answer = self.net(torch.randn(512, 256) + self.drift)
            levels.append(answer.abs().mean())  # expect: graph-in-container
            if turn % 50 == 0:
                print(turn, levels[-1].item())


if __name__ == "__main__":
    Probe().measure(5000)
