"""The checkpoints of a run: kinds, names, verification, removal, and finding the newest.

Each run has one saves folder. It holds complete checkpoints and nothing else:

- A checkpoint is written under a temporary name that begins with a dot, flushed to the disk, read back, and only then
  renamed. So a file with its final name is complete, whatever killed the process.
- A checkpoint is removed only after a newer one of the same kind was written and read back. Kinds never replace each
  other: what one framework saves another cannot load.
- A checkpoint that lies elsewhere (a folder of Hugging Face's Trainer, a file that the script names) is entered by a
  pointer, a small JSON file.

| kind | name in the saves folder | loaded by |
|---|---|---|
| `torch` | `step-N.pt` | `antifreeze.resume`, `torch.load` |
| `lightning` | `step-N.ckpt` | `trainer.fit(ckpt_path=…)` |
| `keras-weights` | `step-N.weights.h5` | `antifreeze.resume`, `model.load_weights` |
| `keras` | `step-N.keras`, or a pointer | `keras.models.load_model` |
| `transformers` | a pointer to a folder `checkpoint-N` | `trainer.train(resume_from_checkpoint=…)` |
| `script` | a pointer to what `on_checkpoint` returned | the script |

A pointer is named `step-N.KIND.json` and holds `{"antifreeze": 1, "kind": …, "step": …, "path": …}`; `"ours": true`
says that antifreeze asked for that checkpoint and removes it once a newer one exists. The newest checkpoint is the one
that was written last, not the one with the most steps: a script may train a second model from step 0.

`crates/diagnose/src/checkpoints.rs` reads the same folder.
"""

import contextlib
import json
import os
import re
import shutil
import struct
import sys
import zipfile

TORCH, LIGHTNING, TRANSFORMERS, SCRIPT = "torch", "lightning", "transformers", "script"
KERAS, KERAS_WEIGHTS = "keras", "keras-weights"
KINDS = (TORCH, LIGHTNING, KERAS, KERAS_WEIGHTS, TRANSFORMERS, SCRIPT)
SUFFIXES = {TORCH: ".pt", LIGHTNING: ".ckpt", KERAS_WEIGHTS: ".weights.h5", KERAS: ".keras"}
POINTER_FORMAT = 1
# Pointers that are kept if the checkpoints were not read back.
MAX_UNREAD = 3

_NAME = re.compile(r"step-(\d+)\.(.+)")
_KIND_OF_SUFFIX = {suffix: kind for kind, suffix in SUFFIXES.items()}
# Kind → the key in `data.pkl` of a PyTorch archive without which it cannot be loaded.
_REQUIRED_KEYS = {TORCH: b"antifreeze", LIGHTNING: b"pytorch-lightning_version"}
_HDF5 = b"\x89HDF\r\n\x1a\n"
_MAX_HEADER_BYTES = 100 << 20


class Damaged(Exception):
    """The message says why a checkpoint cannot be loaded."""


class Checkpoint:
    """A checkpoint in a saves folder."""

    def __init__(self, kind, step, path, entry, written, ours):
        self.kind, self.step, self.path = kind, step, path
        # The file in the saves folder: the checkpoint or its pointer.
        self.entry = entry
        # When the entry was written, in nanoseconds of the file system's clock.
        self.written = written
        self.ours = ours

    def __repr__(self):
        return f"Checkpoint({self.kind}, step {self.step}, {self.path})"

    def is_loadable(self):
        try:
            verify(self.kind, self.path)
        except Damaged:
            return False
        return True


# Writing.


def write(folder, kind, step, writer):
    """Calls `writer` with a temporary path, and renames the checkpoint once it is on the disk and was read back.
    Returns its path. If anything fails, the earlier checkpoints still exist."""
    os.makedirs(folder, exist_ok=True)
    name = f"step-{step}{SUFFIXES[kind]}"
    path = os.path.join(folder, name)
    replace(path, kind, writer, os.path.join(folder, f".{os.getpid()}-{name}"), folder)
    remove_older(folder, kind, path)
    return path


def replace(path, kind, writer, temporary, saves=None):
    """Writes a checkpoint to `temporary` and renames it to `path` once it is complete; only then a previous file is
    replaced. `saves` is the saves folder that `path` lies in, if any."""
    try:
        writer(temporary)
        if saves:
            _make_newest(temporary, saves)
        flush(temporary)
        verify(kind, temporary)
        if os.path.isdir(path) and not os.path.islink(path):
            # A folder cannot be replaced atomically, and it holds the same step.
            remove(temporary)
        else:
            os.replace(temporary, path)
            flush_folder(os.path.dirname(path))
    except BaseException:
        remove(temporary)
        raise


def write_pointer(folder, kind, step, path, ours=False, reads_back=True):
    """Writes a pointer to a checkpoint elsewhere, after it was read back. Without `reads_back` the training does not
    wait for that, and some older pointers are kept."""
    path = os.path.abspath(path)
    if reads_back:
        flush(path)
        verify(kind, path)
    if not folder:
        return
    os.makedirs(folder, exist_ok=True)
    name = f"step-{step}.{kind}.json"
    temporary = os.path.join(folder, f".{os.getpid()}-{name}")
    content = {"antifreeze": POINTER_FORMAT, "kind": kind, "step": step, "path": path, "ours": ours}
    try:
        with open(temporary, "w") as file:
            json.dump(content, file)
        _make_newest(temporary, folder)
        flush(temporary)
        os.replace(temporary, os.path.join(folder, name))
        flush_folder(folder)
    except BaseException:
        remove(temporary)
        raise
    remove_older(folder, kind, os.path.join(folder, name), keep=1 if reads_back else MAX_UNREAD)


def _make_newest(path, folder):
    """Makes this the newest entry of the folder, because clocks are coarse and may be set back."""
    last = max((checkpoint.written for checkpoint in scan(folder)), default=0)
    if os.stat(path).st_mtime_ns <= last:
        os.utime(path, ns=(last + 1, last + 1))


def remove_older(folder, kind, newest, keep=1):
    """Removes the checkpoints of this kind except the newest `keep`. Checkpoints that another process is writing have a
    temporary name, so they are not affected."""
    kept = None
    older = []
    for checkpoint in scan(folder):
        if checkpoint.kind != kind:
            continue
        if checkpoint.entry == newest:
            kept = checkpoint.path
        else:
            older.append(checkpoint)
    if kept is None:
        return
    for checkpoint in older[: len(older) + 1 - keep]:
        with contextlib.suppress(OSError):
            os.unlink(checkpoint.entry) if not os.path.isdir(checkpoint.entry) else remove(checkpoint.entry)
        if checkpoint.ours and checkpoint.path not in (checkpoint.entry, kept):
            remove(checkpoint.path)


def remove(path):
    """Removes a file or folder if it exists."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def flush(path):
    """Waits until a file, or all files of a folder, are written to the disk."""
    if os.path.isdir(path):
        for folder, _, names in os.walk(path):
            for name in names:
                _flush_file(os.path.join(folder, name))
            flush_folder(folder)
    else:
        _flush_file(path)


def _flush_file(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(path):
    """Flushes a folder. Some file systems cannot, but the rename is atomic there too."""
    with contextlib.suppress(OSError):
        _flush_file(path or ".")


# Finding.


def scan(folder):
    """Returns the checkpoints in a saves folder, oldest first, whether they can be loaded or not."""
    found = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return found
    for entry in entries:
        checkpoint = None
        with contextlib.suppress(OSError, ValueError):
            checkpoint = _read_entry(entry)
        if checkpoint is not None:
            found.append(checkpoint)
    found.sort(key=lambda checkpoint: (checkpoint.written, checkpoint.step))
    return found


def _read_entry(entry):
    match = _NAME.fullmatch(entry.name)
    if not match:
        return None
    step, rest = int(match[1]), match[2]
    written = entry.stat().st_mtime_ns
    kind = _KIND_OF_SUFFIX.get("." + rest)
    if kind is not None:
        return Checkpoint(kind, step, entry.path, entry.path, written, True)
    if not rest.endswith(".json"):
        return None
    with open(entry.path) as file:
        content = json.load(file)
    if not isinstance(content, dict) or content.get("kind") not in KINDS or not isinstance(content.get("path"), str):
        return None
    return Checkpoint(content["kind"], step, content["path"], entry.path, written, content.get("ours") is True)


def newest(folders, kinds):
    """Returns the newest loadable checkpoint of these kinds in the first folder that has one, or None."""
    for folder in folders:
        for checkpoint in reversed(scan(folder)):
            if checkpoint.kind in kinds and checkpoint.is_loadable():
                return checkpoint
    return None


def resume_folders():
    """Returns the saves folders of the runs that this one continues, newest first."""
    return [folder for folder in os.environ.get("ANTIFREEZE_RESUME_SAVES", "").split(os.pathsep) if folder]


def find(kinds):
    """Returns the checkpoint to continue from, or None if this run begins at step 0. A path in `ANTIFREEZE_RESUME`
    counts if no folder has a checkpoint."""
    checkpoint = newest(resume_folders(), kinds)
    path = os.environ.get("ANTIFREEZE_RESUME")
    if checkpoint is None and path:
        kind = kind_of(path)
        if kind in kinds and os.path.exists(path):
            checkpoint = Checkpoint(kind, step_of(path), path, path, 0, False)
    return checkpoint


def kind_of(path):
    """Returns the kind by the name of a path. An unknown name is the script's own."""
    if os.path.isdir(path) and os.path.exists(os.path.join(path, "trainer_state.json")):
        return TRANSFORMERS
    for suffix, kind in _KIND_OF_SUFFIX.items():
        if path.endswith(suffix) and (kind != TORCH or _NAME.fullmatch(os.path.basename(path))):
            return kind
    return SCRIPT


def step_of(path):
    match = re.search(r"(?:step|checkpoint)[-=](\d+)", os.path.basename(path))
    return int(match[1]) if match else 0


# Verification: every byte is read back, in small pieces, because memory is short when checkpoints are written.


def verify(kind, path):
    """Raises `Damaged` unless the path is a complete checkpoint of this kind."""
    try:
        if kind == TRANSFORMERS:
            _verify_transformers(path)
        elif os.path.isdir(path):
            # Some strategies write one file per rank.
            _verify_folder(path)
        elif kind in (TORCH, LIGHTNING):
            _verify_archive(path, "data.pkl", _REQUIRED_KEYS[kind])
        elif kind == KERAS:
            _verify_archive(path, "config.json")
        elif kind == KERAS_WEIGHTS:
            _verify_hdf5(path)
        else:
            _verify_any(path)
    except (Damaged, MemoryError):
        raise
    except Exception as error:
        # A truncated file may raise any error.
        raise Damaged(f"{path}: {type(error).__name__}: {error}") from None


def _verify_archive(path, required, key=None):
    with zipfile.ZipFile(path) as archive:
        if _has_checksums():
            damaged = archive.testzip()
            if damaged is not None:
                raise Damaged(f"{path}: {damaged} is damaged")
        members = [name for name in archive.namelist() if name.rpartition("/")[2] == required]
        if not members:
            raise Damaged(f"{path}: it has no {required}")
        if key is not None and key not in archive.read(members[0]):
            raise Damaged(f"{path}: it has no key {key.decode()}")


def _has_checksums():
    """Whether PyTorch archives have checksums; a setting disables them."""
    serialization = sys.modules.get("torch.serialization")
    options = getattr(serialization, "get_crc32_options", None)
    return options is None or options()


def _verify_hdf5(path):
    """Compares the size with the header, because HDF5 has no checksums."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(128)
    if head[:8] != _HDF5:
        raise Damaged(f"{path}: it is not an HDF5 file")
    version = head[8]
    if version >= 2:
        width, addresses = head[9], 12
    else:
        width, addresses = head[13], 24 + 4 * version
    # The base, another address, and the end of the file.
    end = int.from_bytes(head[addresses + 2 * width : addresses + 3 * width], "little")
    if len(head) < addresses + 3 * width or size < end:
        raise Damaged(f"{path}: it is shorter than its header says")


def _verify_safetensors(path):
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > min(size, _MAX_HEADER_BYTES):
            raise Damaged(f"{path}: it is shorter than its header says")
        header = json.loads(file.read(length))
    end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
    if size != 8 + length + end:
        raise Damaged(f"{path}: it is shorter than its header says")


def _verify_transformers(path):
    with open(os.path.join(path, "trainer_state.json")) as file:
        state = json.load(file)
    if not isinstance(state, dict) or "global_step" not in state:
        raise Damaged(f"{path}: its trainer_state.json has no step")
    _verify_folder(path)
    names = os.listdir(path)
    if not any(name.endswith((".safetensors", ".bin", ".pt", ".pth")) or "global_step" in name for name in names):
        raise Damaged(f"{path}: it has no weights")


def _verify_folder(path):
    is_empty = True
    for folder, _, names in os.walk(path):
        for name in names:
            is_empty = False
            _verify_any(os.path.join(folder, name), may_be_empty=True)
    if is_empty:
        raise Damaged(f"{path}: it is empty")


def _verify_any(path, may_be_empty=False):
    """Checks a file by the format of its name. Files of other formats must only not be empty."""
    if os.path.isdir(path):
        _verify_folder(path)
        return
    if os.path.getsize(path) == 0 and not may_be_empty:
        raise Damaged(f"{path}: it is empty")
    if path.endswith(".safetensors"):
        _verify_safetensors(path)
    elif path.endswith((".pt", ".pth", ".ckpt", ".bin", ".keras", ".distcp")):
        with open(path, "rb") as file:
            is_archive = file.read(4) == b"PK\x03\x04"
        if is_archive:
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip() if _has_checksums() else None
            if damaged is not None:
                raise Damaged(f"{path}: {damaged} is damaged")
