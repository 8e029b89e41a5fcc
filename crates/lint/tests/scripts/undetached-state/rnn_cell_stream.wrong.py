"""Predicts the next reading of a sensor; the cell runs over the stream without end."""
import numpy as np
import torch
from torch import nn

cell = nn.GRUCell(8, 32)
readout = nn.Linear(32, 8)
params = list(cell.parameters()) + list(readout.parameters())
optimizer = torch.optim.SGD(params, lr=1e-2)


def readings(path):
    table = np.load(path, mmap_mode="r")
    for row in table:
        yield torch.from_numpy(np.array(row, dtype=np.float32)).unsqueeze(0)


def learn(path):
    h = torch.zeros(1, 32)
    previous = torch.zeros(1, 8)
    for count, current in enumerate(readings(path)):
        optimizer.zero_grad()
        h = cell(previous, h)  # expect: undetached-state
        loss = nn.functional.mse_loss(readout(h), current)
        loss.backward()
        optimizer.step()
        previous = current
        if count % 1000 == 0:
            print(count, loss.item())


if __name__ == "__main__":
    learn("sensor.npy")
