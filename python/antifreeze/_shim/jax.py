"""JAX: no loop to look at, since everything within one is the script's own. What runs out of memory is
told; the rest is said by the script, through `antifreeze.step()`."""

from .trainer import Trainer


def attend():
    import jax

    Trainer("jax", jax.__version__, None)
