# cause: slow-storage
# reads: 2M
# needs: torch
"""Samples are read from a disk that gives two megabytes a second."""
import os

import torch

model = torch.nn.Linear(1024, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with open("data", "wb") as file:
    for part in range(80):
        file.write(os.urandom(1 << 20))
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
with open("data", "rb", buffering=0) as file:
    while batch := file.read(1 << 20):
        optimizer.zero_grad()
        samples = torch.frombuffer(bytearray(batch), dtype=torch.uint8)[: 64 * 1024].reshape(64, 1024)
        loss = model(samples / 255.0).pow(2).mean()
        loss.backward()
        optimizer.step()
