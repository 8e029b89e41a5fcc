"""The Python that has the frameworks, and the environment in which they say the same every time."""

import os
from pathlib import Path
from typing import Dict, Optional

_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
_installed = _cache / "antifreeze-test/venv/bin/python"

PYTHON = os.environ.get("ANTIFREEZE_TEST_PYTHON") or (str(_installed) if _installed.exists() else "python3")

#: Nothing that depends on the number of threads, the time, a network or an earlier run.
STEADY: Dict[str, Optional[str]] = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "JAX_PLATFORMS": "cpu",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONWARNINGS": "ignore",
    "CUDA_VISIBLE_DEVICES": "",
    "MASTER_ADDR": "127.0.0.1",
}
