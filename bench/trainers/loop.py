"""A trainer that only computes: fixed work, loop.py SCALE; prints the seconds it took."""

import json
import sys
import time


def step(weights):
    loss = 0.0
    for i, weight in enumerate(weights):
        error = weight * 0.5 - i
        loss += error * error
        weights[i] = weight - 0.001 * error
    return loss


def main():
    weights = [float(i) for i in range(1_000)]
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(int(15_000 * float(sys.argv[1]))):
        step(weights)
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))


main()
