"""The part of antifreeze that runs inside the Python process that trains.

The stub (`sitecustomize`) calls `observe_framework` when a framework was imported. From then on the process reports its
phase and steps in the run's page (see `page`), and does what the guard asks for at the end of a step. Everything longer
goes to a file in the run's folder (see `event_log`).

Rules for all code here:

- An error of the shim never reaches the script: it is logged, and the script continues (`suppress_faults`).
- No threads, no warnings, no output, and no change that the script could observe.
- Code that runs in every step costs less than a microsecond.
"""

import sys

from . import event_log


def observe_framework(name):
    """Called after the framework `name` was imported."""
    with event_log.suppress_faults(f"observing {name}"):
        event_log.log_event("loaded", name=name, version=str(getattr(sys.modules.get(name), "__version__", "")))
        if name == "torch":
            from . import pytorch

            pytorch.observe()
        elif name in ("keras", "tensorflow"):
            from . import keras

            keras.observe()
        elif name == "jax":
            from . import jax

            jax.observe()
        else:
            from .trainer import get_trainer

            get_trainer()
