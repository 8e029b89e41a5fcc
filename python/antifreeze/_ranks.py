"""Ranks that train one model together (DistributedDataParallel), where one of them may take a step in parts."""

from __future__ import annotations

import contextlib


def world_size(torch):
    distributed = torch.distributed
    is_initialized = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if is_initialized else 1


@contextlib.contextmanager
def bypass_ddp(torch):
    """Inside it, a DistributedDataParallel module runs as its inner module would: nothing is communicated."""
    parallel = torch.nn.parallel.DistributedDataParallel
    forward = parallel.forward
    parallel.forward = lambda self, *args, **kwargs: self.module(*args, **kwargs)
    try:
        yield
    finally:
        parallel.forward = forward


def all_reduce_min(torch, numbers, device):
    """Returns the minimum of each number over all ranks."""
    distributed = torch.distributed
    reduced = torch.tensor(numbers, dtype=torch.int64, device=device)
    distributed.all_reduce(reduced, distributed.ReduceOp.MIN)
    return reduced.tolist()


def all_reduce_gradients(torch, parameters):
    """Averages the gradients over all ranks, one parameter at a time. A missing gradient counts as zeros, because every
    rank must take part."""
    distributed = torch.distributed
    ranks = distributed.get_world_size()
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        distributed.all_reduce(parameter.grad)
        parameter.grad.div_(ranks)
