"""PyTorch: validation without `torch.no_grad()`, which keeps each loss with its graph.

When it is refused memory, it keeps plain numbers instead and continues.
"""

import torch

from memory import available_megabytes
from trainer import STEPS_PER_SECOND, Loop

ROWS = 1024
WIDTH = 1024
# The head uses few columns, because arithmetic is slow on an emulated CPU. But a graph keeps whole rows
# alive: 4 MB with each loss.
USED_COLUMNS = 16


class Model(torch.nn.Module):
    """Frozen embeddings and a small head."""

    def __init__(self):
        super().__init__()
        self._rows = torch.nn.Embedding.from_pretrained(torch.rand(4 * ROWS, WIDTH))
        self._head = torch.nn.Linear(USED_COLUMNS, 1)

    def loss(self):
        batch = self._rows(torch.randint(0, 4 * ROWS, (ROWS,)))
        return self._head(batch[:, :USED_COLUMNS]).square().mean()


def is_out_of_memory(error):
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def main():
    torch.manual_seed(0)
    loop = Loop(base=available_megabytes() // 12)
    model = Model()
    loop.warm_up()
    loop.log_onset()
    losses = []
    try:
        while True:
            losses.append(model.loss())
            loop.step()
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        losses.clear()
        loop.log_caught(error)
    with torch.no_grad():
        for _ in range(4 * STEPS_PER_SECOND):
            losses.append(model.loss().item())
            loop.step()
    loop.finish()


main()
