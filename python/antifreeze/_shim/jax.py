"""JAX: no loop to look at, since everything within one is the script's own. What runs out of memory is
told, and who holds it when the guard asks; steps are the script's to say."""

from .trainer import trainer


def attend():
    import jax

    trainer().trains("jax", jax.__version__, None, None, None)
