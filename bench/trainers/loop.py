"""A trainer that only computes: fixed work, loop.py SCALE; prints the seconds that each slice
of it took."""

import json
import sys
import time

SLICE = 100


def step(weights):
    loss = 0.0
    for i, weight in enumerate(weights):
        error = weight * 0.5 - i
        loss += error * error
        weights[i] = weight - 0.001 * error
    return loss


def main():
    weights = [float(i) for i in range(1_000)]
    slices, cpu = [], time.process_time()
    for _ in range(int(15_000 / SLICE * float(sys.argv[1]))):
        began = time.perf_counter()
        for _ in range(SLICE):
            step(weights)
        slices.append(time.perf_counter() - began)
    print(json.dumps({"slices": slices, "cpu": time.process_time() - cpu}))


main()
