"""PyTorch: the batch does not fit into memory; the script halves it and continues.

Under a budget the allocation that does not fit raises PyTorch's RuntimeError at its line,
which can be caught.

    antifreeze run --budget 1200MB -- python torch_big_batch.py
"""

import torch
from torch import nn

STEPS = 5


def train_step(model, optimizer, batch):
    images = torch.rand(batch, 3072)
    labels = torch.randint(0, 10, (batch,))
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3072, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, step = 131_072, 0
    while step < STEPS:
        try:
            loss = train_step(model, optimizer, batch)
        except RuntimeError as error:
            if "can't allocate memory" not in str(error):
                raise
            batch //= 2
            print(f"too large for the memory: going on with a batch of {batch}", flush=True)
            continue
        step += 1
        print(f"step {step}: batch {batch}, loss {loss:.3f}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
