# cause: distributed-failure
# needs: torch
import os
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing


def rank(number):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29618")
    distributed.init_process_group("gloo", rank=number, world_size=2)
    for step in range(20):
        distributed.all_reduce(torch.ones(1000))
        if number == 1 and step == 5:
            os._exit(0)
        time.sleep(0.05)


if __name__ == "__main__":
    multiprocessing.spawn(rank, nprocs=2)
