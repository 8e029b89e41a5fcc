import torch
import torch.multiprocessing as multiprocessing


def fill(rank, shared):
    shared[rank] = rank + 1


def fail(rank):
    raise SystemExit(3)


if __name__ == "__main__":
    shared = torch.zeros(2).share_memory_()
    multiprocessing.spawn(fill, (shared,), nprocs=2)
    print(shared.tolist())
    try:
        multiprocessing.spawn(fail, nprocs=1)
    except multiprocessing.ProcessExitedException as error:
        print(error)
