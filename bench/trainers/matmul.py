"""A small network on torch, with NumPy arrays of many sizes made and dropped at each step:
fixed work, matmul.py SCALE; prints the seconds that each step took."""

import json
import sys
import time

import numpy
import torch


def batches(step):
    """Arrays from a few hundred bytes to some megabytes, as augmentation makes them."""
    made = [numpy.empty(64 << (size % 16), dtype=numpy.uint8) for size in range(step, step + 64)]
    made.append(numpy.zeros(1_500_000 + step % 7 * 100_000, dtype=numpy.float32))
    return sum(len(array) for array in made)


def main():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    inputs, labels = torch.randn(128, 512), torch.randint(0, 10, (128,))

    def train(steps):
        for step in range(steps):
            began = time.perf_counter()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
            batches(step)
            yield time.perf_counter() - began

    for _ in train(10):
        pass
    cpu = time.process_time()
    slices = list(train(int(150 * float(sys.argv[1]))))
    print(json.dumps({"slices": slices, "cpu": time.process_time() - cpu}))


main()
