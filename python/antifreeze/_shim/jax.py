"""JAX: reports out-of-memory errors, and which names hold the memory when the guard asks. Steps are not detected,
because the training loop is the script's own."""

from .trainer import get_trainer


def observe():
    import jax

    get_trainer().report_framework("jax", jax.__version__, None, None, None)
