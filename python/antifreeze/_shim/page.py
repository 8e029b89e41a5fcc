"""This process's slot in the page, the memory that guard, front and all processes of a run share.

The guard reads the slot at its own pace, so a report costs one write to memory and no system call. The layout is that
of crates/ipc/src/page.rs; a test in crates/cli/src/embed.rs compares every number below with it.
"""

import mmap
import os
import struct

MAGIC = 0x47465041
VERSION = 7

# Values of PHASE.
UNKNOWN, DATA, FORWARD, BACKWARD, OPTIMIZER, EVALUATION, SAVING = 0, 1, 2, 3, 4, 5, 6

# The fields of a slot (`Trainer` in page.rs) as indices of 32-bit words; STEPS and SAVED_STEP take two words each. The
# guard writes SAVE_ASKED, STOP_ASKED, RUNG and LOOK_ASKED, the process writes the others.
PID, PHASE, BATCH, SAVE_ASKED, STOP_ASKED, SAVE_ANSWERED, STOP_ANSWERED, SAVE_MS = 0, 1, 2, 3, 4, 5, 6, 7
STEPS, SAVED_STEP = 8, 10
RUNG, LOOK_ASKED, LISTENS, SAVE_FAILED = 12, 13, 14, 15
WORDS = 16
# Bits of LISTENS: the process handles SIGURG, and writes its stacks when it gets the signal for that.
HEARS, SHOWS_STACKS = 1, 2

# Offsets in the head of the page, in bytes.
FRONT_PID, GUARD_PID, LEAVE = 72, 76, 80


class Slot:
    """32-bit fields are `words[PHASE]` and so on, 64-bit fields are `longs[STEPS // 2]`."""

    def __init__(self, page, start):
        view = memoryview(page)[start : start + 4 * WORDS]
        self.words = view.cast("I")
        self.longs = view.cast("Q")


def claim_slot():
    """Returns the slot of this process, or None if there is no page or no free slot."""
    return _open_page(os.environ.get("ANTIFREEZE_PAGE", ""), _find_slot)


def read_version(paths):
    """Returns the version of the page at the first of these paths that can be opened, or None if it is no page."""
    head = _open_page(paths, _read_head)
    return head[1] if head and head[0] == MAGIC else None


def release_guard(paths, front, status):
    """Tells the guard to end, as the front does. `status` is 0 if the guarded code succeeded, else 1. Returns False if
    there is no such guard."""

    def request_leave(descriptor):
        magic, version = _read_head(descriptor)[:2]
        if magic != MAGIC or version != VERSION:
            return False
        pids = struct.unpack("=2I", os.pread(descriptor, 8, FRONT_PID))
        if pids != (front, int(paths.split("/")[2])):
            return False
        os.pwrite(descriptor, struct.pack("=I", (status << 8) + 1), LEAVE)
        return True

    return bool(_open_page(paths, request_leave))


def _open_page(paths, use):
    for path in paths.split(":"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            return use(descriptor)
        finally:
            os.close(descriptor)
    return None


def _read_head(descriptor):
    head = os.pread(descriptor, 20, 0)
    return struct.unpack("=5I", head) if len(head) == 20 else (0,) * 5


def _find_slot(descriptor):
    magic, version, start, stride, count = _read_head(descriptor)
    if magic != MAGIC or version != VERSION or stride < 4 * WORDS:
        return None
    page = mmap.mmap(descriptor, start + stride * count)
    pid = os.getpid()
    for offset in range(count):
        slot = Slot(page, start + stride * ((pid + offset) % count))
        if slot.words[PID] in (0, pid):
            # If two processes claim a slot at the same instant, the later one owns it and both write to it. Only
            # reported numbers can be wrong then.
            slot.words[PID] = pid
            return slot
    return None
