"""What antifreeze sees of a training from inside its interpreter.

The stub (`sitecustomize`) calls `attend` when a framework has been imported. From then on the process
says in the page of its run what it is doing (see `page`), and at the end of a step does what the guard
asks for. What takes more words goes to a file of the run's folder (see `report`).

Rules that everything here keeps:

- An error of ours is never the script's: it is written down, and the script goes on (`safely`).
- No thread, no warning, nothing printed, nothing that the script could read is changed.
- What runs in every step costs less than a microsecond.
"""

import sys

from . import event_log


def attend(name):
    """A framework was imported."""
    with event_log.suppress_faults(f"looking at {name}"):
        event_log.log_event("loaded", name=name, version=str(getattr(sys.modules.get(name), "__version__", "")))
        if name == "torch":
            from . import pytorch

            pytorch.attend()
        elif name in ("keras", "tensorflow"):
            from . import keras

            keras.attend()
        elif name == "jax":
            from . import jax

            jax.attend()
        else:
            from .trainer import get_trainer

            get_trainer()
