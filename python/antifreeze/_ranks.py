"""Ranks that train one model together, where a step of one of them may be taken in parts."""

from __future__ import annotations

import contextlib


def number_of_ranks(torch):
    distributed = torch.distributed
    is_one_of_many = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if is_one_of_many else 1


@contextlib.contextmanager
def alone(torch):
    """In it, a module that is run by several ranks runs as it would in one."""
    parallel = torch.nn.parallel.DistributedDataParallel
    forward = parallel.forward
    parallel.forward = lambda self, *words, **named: self.module(*words, **named)
    try:
        yield
    finally:
        parallel.forward = forward


def smallest(torch, numbers, device):
    """Of all ranks, of each of the numbers."""
    distributed = torch.distributed
    told = torch.tensor(numbers, dtype=torch.int64, device=device)
    distributed.all_reduce(told, distributed.ReduceOp.MIN)
    return told.tolist()


def reduce_gradients(torch, parameters):
    """The mean of all ranks, in pieces of some size. Whoever has no gradient has one of zeros: all take part."""
    distributed = torch.distributed
    ranks = distributed.get_world_size()
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        distributed.all_reduce(parameter.grad)
        parameter.grad.div_(ranks)
