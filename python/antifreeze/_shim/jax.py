"""JAX: no loop to look at, since everything within one is the script's own. What runs out of memory is
told, and who holds it when the guard asks; steps are the script's to say."""

from .trainer import get_trainer


def attend():
    import jax

    get_trainer().report_framework("jax", jax.__version__, None, None, None)
