"""PyTorch: the leak of torch_leak.py. The script catches the error, drops the list and continues.

    antifreeze run --budget 1GB -- python torch_leak_caught.py
"""

import time

import torch
from torch import nn

STEPS = 150


def main():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))
    losses = []
    for step in range(1, STEPS + 1):
        try:
            inputs = torch.randn(1024, 256)
            loss = (model(inputs) - inputs.mean(dim=1, keepdim=True)).pow(2).mean()
            losses.append(loss)
        except RuntimeError as error:
            if "can't allocate memory" not in str(error):
                raise
            print(f"step {step}: out of memory; dropping {len(losses)} losses", flush=True)
            losses.clear()
        time.sleep(0.03)
    print(f"done: {STEPS} steps")


if __name__ == "__main__":
    main()
