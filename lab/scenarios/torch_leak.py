"""PyTorch: validation that keeps each loss with its graph, for want of `torch.no_grad()`.

When it is refused memory it keeps plain numbers instead, and goes on.
"""

import torch

from memory import available
from trainer import STEPS_A_SECOND, Loop

ROWS = 1024
WIDTH = 1024
# The head looks at a few columns, which keeps arithmetic out of an emulated machine, but a graph
# keeps the whole of the rows alive: 4 MB with each loss.
USED = 16


class Model(torch.nn.Module):
    """Frozen embeddings and a small head."""

    def __init__(self):
        super().__init__()
        self._rows = torch.nn.Embedding.from_pretrained(torch.rand(4 * ROWS, WIDTH))
        self._head = torch.nn.Linear(USED, 1)

    def loss(self):
        batch = self._rows(torch.randint(0, 4 * ROWS, (ROWS,)))
        return self._head(batch[:, :USED]).square().mean()


def ran_out(error):
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def main():
    torch.manual_seed(0)
    loop = Loop(base=available() // 12)
    model = Model()
    loop.warm_up()
    loop.onset()
    losses = []
    try:
        while True:
            losses.append(model.loss())
            loop.step()
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        losses.clear()
        loop.caught(error)
    with torch.no_grad():
        for _ in range(4 * STEPS_A_SECOND):
            losses.append(model.loss().item())
            loop.step()
    loop.finish()


main()
