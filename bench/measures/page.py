"""Reads the page that guard, front and cushion share.

The offsets are those that crates/ipc/src/page.rs asserts at compile time; types and constants are read from there too.
"""

import os
import re
import struct

from .bench import REPOSITORY

SOURCE = os.path.join(REPOSITORY, "crates/ipc/src/page.rs")
TYPES = {"AtomicU32": "<I", "AtomicI32": "<i", "AtomicU64": "<Q"}


def layout(source):
    """Field of `Head` → (offset, format), for the fields whose offset page.rs asserts."""
    body = re.search(r"pub struct Head \{(.*?)^\}", source, re.S | re.M).group(1)
    types = dict(re.findall(r"^\s*pub (\w+): (\w+),", body, re.M))
    offsets = re.findall(r"offset_of!\(Head, (\w+)\) == (\d+)\)", source)
    return {name: (int(offset), TYPES[types[name]]) for name, offset in offsets}


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
