"""Reads the page that guard, front and cushion share.

The layout is taken from the source, crates/ipc/src/page.rs: the fields of `Head` in their
order, each aligned to its own size as `#[repr(C)]` does, up to the first array.
"""

import os
import re
import struct

from .bench import REPOSITORY

SOURCE = os.path.join(REPOSITORY, "crates/ipc/src/page.rs")
TYPES = {"AtomicU32": "<I", "AtomicI32": "<i", "AtomicU64": "<Q"}


def layout(source):
    """Field of `Head` → (offset, format)."""
    body = re.search(r"pub struct Head \{(.*?)^\}", source, re.S | re.M).group(1)
    fields, offset = {}, 0
    for name, kind in re.findall(r"^\s*pub (\w+): ([^,]+),", body, re.M):
        if kind not in TYPES:
            break
        size = struct.calcsize(TYPES[kind])
        offset = -(-offset // size) * size
        fields[name] = (offset, TYPES[kind])
        offset += size
    return fields


def constant(source, name):
    text = re.search(rf"pub const {name}: u32 = (\w+);", source).group(1)
    return int(text.replace("_", ""), 0)


class Page:
    """The page of a running guard."""

    def __init__(self, guard, descriptor):
        with open(SOURCE) as file:
            source = file.read()
        self.fields = layout(source)
        self.path = f"/proc/{guard}/fd/{descriptor}"
        found = [self.read(name) for name in ("magic", "version", "guard_pid")]
        wanted = [constant(source, "MAGIC"), constant(source, "VERSION"), guard]
        if found != wanted:
            raise RuntimeError(
                f"the page says {found} where {wanted} is expected: "
                "the program and crates/ipc/src/page.rs are not of one version"
            )

    def read(self, name):
        offset, format = self.fields[name]
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            return struct.unpack(format, os.pread(descriptor, struct.calcsize(format), offset))[0]
        finally:
            os.close(descriptor)
