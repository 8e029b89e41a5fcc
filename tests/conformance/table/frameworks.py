"""Frameworks: one import and a few training steps of each, and the ways in which they start processes."""

from __future__ import annotations

from typing import Tuple

from ..entry import Entry, KnownDifference
from .interpreter import PYTHON, STEADY


def training(
    name: str, script: str, *needs: str, arguments: Tuple[str, ...] = (), heavy: bool = True, **more: object
) -> Entry:
    """A script of `programs/` that trains for a few steps and prints what it has learned."""
    return Entry(
        name,
        (PYTHON, script, *arguments),
        needs=(PYTHON, *(f"module {need}" for need in needs)),
        brings=(script,),
        env=STEADY,
        loud=not heavy,
        heavy=heavy,
        timeout=300,
        **more,  # type: ignore[arg-type]
    )


ENTRIES = [
    training("numpy", "numpy_steps.py", "numpy", heavy=False),
    training(
        "torch",
        "torch_steps.py",
        "torch",
        heavy=False,
        known=(
            KnownDifference(
                "file work/hook",
                r"mode 644, 6 bytes: b'False\\n'",
                "the shim sets sys.excepthook to save a run that an error ends (docs/shim.md)",
            ),
        ),
    ),
    training("tensorflow", "tensorflow_steps.py", "tensorflow"),
    training("jax", "jax_steps.py", "jax"),
    training("scikit-learn", "sklearn_steps.py", "sklearn"),
    training("joblib", "joblib_steps.py", "joblib"),
    training("a DataLoader with fork", "loader.py", "torch", arguments=("fork",)),
    training("a DataLoader with spawn", "loader.py", "torch", arguments=("spawn",)),
    training("a DataLoader with forkserver", "loader.py", "torch", arguments=("forkserver",)),
    training("torch.multiprocessing", "torch_processes.py", "torch"),
    training("lightning", "lightning_steps.py", "lightning"),
    training(
        "transformers Trainer",
        "trainer_steps.py",
        "transformers",
        "accelerate",
        masks=(r"(_runtime|_per_second)': '[0-9.e+]+'", r"sha256 \w+", r"\d+ bytes"),
    ),
    Entry(
        "torchrun with two ranks",
        (PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ranks.py"),
        needs=(PYTHON, "module torch"),
        brings=("ranks.py",),
        masks=(r"torchelastic_\w+", r"[0-9a-f]{8}-[0-9a-f-]{27}_\w+"),
        env=STEADY,
        loud=False,
        heavy=True,
        timeout=300,
    ),
    Entry(
        "a notebook",
        (PYTHON, "-m", "nbconvert", "--to", "notebook", "--execute", "--stdout", "notebook.ipynb"),
        needs=(PYTHON, "module nbconvert", "module ipykernel"),
        brings=("notebook.ipynb",),
        masks=(r"\d+-\d+-\d+T[0-9:.]+Z",),
        env=STEADY,
        loud=False,
        heavy=True,
        timeout=300,
    ),
]
