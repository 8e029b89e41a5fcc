"""PyTorch: a script that leaks, and a run that finishes nevertheless.

Before memory is full, antifreeze saves the model and the optimizer and stops the run. With `--retries` it
restarts the script, which continues at the saved step.

    antifreeze run --budget 900MB --retries 5 -- python torch_resume.py
"""

import antifreeze
import torch
from torch import nn

STEPS = 1000


def main():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters())
    first = antifreeze.resume(model=model, optimizer=optimizer)
    print(f"begins at step {first}", flush=True)
    leak = []
    for _ in range(first, STEPS):
        inputs = torch.randn(1000, 64)
        loss = (model(inputs) - inputs.mean(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        leak.append(torch.randn(400, 400))
    print(f"done: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
