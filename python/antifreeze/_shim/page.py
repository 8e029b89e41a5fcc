"""The part of the run's page that belongs to this process: see crates/ipc/src/page.rs.

The page is memory that the guard, the front and every process of the run share. The guard reads what
stands here at its own pace, so that saying something costs a write to memory, and no call.
"""

import mmap
import os
import struct

MAGIC = 0x47465041
VERSION = 7

# What a process is at, as one byte.
NOTHING, DATA, FORWARD, BACKWARD, OPTIMIZER, EVALUATION, SAVING = range(7)

# The fields of a slot, as places in an array of 32 bit words; steps and the step that was saved take two. The
# guard writes what it asks for, and on which rung of its ladder it is; the rest is ours.
PID, PHASE, BATCH, SAVE_ASKED, STOP_ASKED, SAVE_ANSWERED, STOP_ANSWERED, SAVE_MS = range(8)
STEPS, SAVED_STEP = 8, 10
RUNG, LOOK_ASKED, LISTENS, SAVE_FAILED = range(12, 16)
# In LISTENS: it has a handler for our signal, and shows its stacks for another.
HEARS, SHOWS_STACKS = 1, 2
WORDS = 16
# Of the head, as places in the page: who the front and the guard are, and that the guard is to leave.
FRONT_PID, GUARD_PID, LEAVE = 72, 76, 80


class Slot:
    """`words[PHASE]` and the like; `longs[STEPS // 2]` for the wide ones."""

    def __init__(self, page, start):
        view = memoryview(page)[start : start + 4 * WORDS]
        self.words = view.cast("I")
        self.longs = view.cast("Q")


def claim():
    """The slot of this process. None when there is no page, or no room in it."""
    return _in_page(os.environ.get("ANTIFREEZE_PAGE", ""), _slot_in)


def version(paths):
    """Of the page at the first of these paths, which may be one of ours or not; None where there is none."""
    head = _in_page(paths, _head)
    return head[1] if head and head[0] == MAGIC else None


def let_go(paths, front, status):
    """Has the guard end, as the front does; False where there is none. What was guarded went well (0) or failed (1)."""

    def tell(descriptor):
        magic, version = _head(descriptor)[:2]
        if magic != MAGIC or version != VERSION:
            return False
        pids = struct.unpack("=2I", os.pread(descriptor, 8, FRONT_PID))
        if pids != (front, int(paths.split("/")[2])):
            return False
        os.pwrite(descriptor, struct.pack("=I", (status << 8) + 1), LEAVE)
        return True

    return bool(_in_page(paths, tell))


def _in_page(paths, do):
    for path in paths.split(":"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            return do(descriptor)
        finally:
            os.close(descriptor)
    return None


def _head(descriptor):
    head = os.pread(descriptor, 20, 0)
    return struct.unpack("=5I", head) if len(head) == 20 else (0,) * 5


def _slot_in(descriptor):
    magic, version, start, stride, count = _head(descriptor)
    if magic != MAGIC or version != VERSION or stride < 4 * WORDS:
        return None
    page = mmap.mmap(descriptor, start + stride * count)
    pid = os.getpid()
    for offset in range(count):
        slot = Slot(page, start + stride * ((pid + offset) % count))
        if slot.words[PID] in (0, pid):
            # Two processes that take the same slot in the same instant: the later one has it, and
            # the other one writes beside it until it notices. Nothing but figures can be wrong.
            slot.words[PID] = pid
            return slot
    return None
