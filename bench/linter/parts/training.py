"""Selects the training code of a package by path and text.

A file is training code if all of this holds:

- it is Python or a notebook, not a test, and not part of a test suite;
- its code imports PyTorch, TensorFlow or Keras, or a package that trains with them;
- its code trains: it calls `backward` or `train_on_batch`, opens a `GradientTape`, defines a
  `training_step`, or passes a model to `fit` or to a `Trainer`.

Comments and triple-quoted text are ignored. Patterns decide instead of a parser, so that every
version of Python selects the same files.
"""

import hashlib
import json
import re

FRAMEWORKS = (
    "torch", "tensorflow", "keras", "tf_keras", "lightning", "pytorch_lightning", "accelerate",
    "ignite", "transformers", "fastai", "torch_geometric",
)
IMPORTS = re.compile(rf"^[ \t]*(?:import|from)[ \t]+(?:{'|'.join(FRAMEWORKS)})\b", re.M)

# A training loop, or a step of one.
LOOPS = re.compile(
    r"\.backward\("
    r"|\bGradientTape\("
    r"|\.train_on_batch\("
    r"|\bdef training_step\("
)
# A loop of a library, with the script's own data, model and settings.
HANDS_OVER = re.compile(
    r"(?:model|net|trainer|learn|autoencoder)\w*\.fit\w*\("
    r"|trainer\w*\.train\(",
    re.I,
)

TESTS = {"test", "tests", "testing", "unittests", "test_utils", "testdata", "integration_tests"}
TEST_FILE = re.compile(r"(?:^test_.*|.*_tests?|^conftest|^tests?)\.(?:py|ipynb)$")

TRIPLE_QUOTED = re.compile(r"([\"'])\1\1.*?\1\1\1", re.S)
COMMENT = re.compile(r"^[ \t]*#.*$|[ \t]#[^\"'\n]*$", re.M)

PATTERNS = (IMPORTS, LOOPS, HANDS_OVER, TEST_FILE, TRIPLE_QUOTED, COMMENT)


def selection_checksum():
    """Returns a checksum that changes with the selection rules."""
    choice = [pattern.pattern for pattern in PATTERNS] + sorted(TESTS)
    return hashlib.sha256("\n".join(choice).encode()).hexdigest()[:12]


def training_kind(path, content):
    """Returns `loop` or `trainer` for training code, else None."""
    if not path.endswith((".py", ".ipynb")) or is_test(path):
        return None
    code = code_without_comments(path, content)
    if not IMPORTS.search(code):
        return None
    if LOOPS.search(code):
        return "loop"
    return "trainer" if HANDS_OVER.search(code) else None


def is_test(path):
    *folders, name = path.split("/")
    return bool(TESTS.intersection(folders)) or bool(TEST_FILE.match(name))


def code_without_comments(path, content):
    """Returns the text without comments and triple-quoted text; of a notebook, its code cells.
    Empty if the file is not UTF-8 or not a notebook."""
    try:
        text = content.decode("utf-8")
        if path.endswith(".ipynb"):
            text = code_cells(text)
    except ValueError:
        return ""
    return COMMENT.sub("", TRIPLE_QUOTED.sub("", text))


def code_cells(text):
    notebook = json.loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    sources = [c["source"] for c in cells or [] if c.get("cell_type") == "code"]
    return "\n".join(s if isinstance(s, str) else "".join(s) for s in sources)
