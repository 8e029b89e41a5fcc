# cause: cpu-oversubscribed
# needs: torch
import multiprocessing
import time

import torch


def work(until):
    torch.set_num_threads(8)
    a = torch.randn(700, 700)
    while time.monotonic() < until:
        a @ a


if __name__ == "__main__":
    until = time.monotonic() + 40
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(until,)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
