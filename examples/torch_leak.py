"""PyTorch: a common leak. A list of losses keeps the graph of every step.

`losses.append(loss)` instead of `losses.append(loss.item())` keeps the activations of all
steps. Under a budget the run ends with PyTorch's own error at the step that does not fit,
and the traceback shows the line.

    antifreeze run --budget 1GB -- python torch_leak.py
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
        inputs = torch.randn(1024, 256)
        hidden = model(inputs)
        losses.append((hidden - inputs.mean(dim=1, keepdim=True)).pow(2).mean())
        if step % 10 == 0:
            print(f"step {step}: loss {losses[-1].item():.3f}", flush=True)
        time.sleep(0.03)
    print("done")


if __name__ == "__main__":
    main()
