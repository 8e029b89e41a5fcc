"""Makes a shared library with much data, like those of CUDA.

    python3 library.py OUT.so FILE_BYTES ZERO_BYTES [LIBRARY.so …]

FILE_BYTES are mapped from the file, where they are a hole that takes no disk space; ZERO_BYTES are zero-filled by the
loader. The other libraries are its dependencies, in its own folder. Needs a C compiler.
"""

import struct
import subprocess
import sys

PT_LOAD = 1
WRITABLE = 2


def make_library(out: str, file_bytes: int, zero_bytes: int, *needed: str) -> None:
    # `data` keeps the segment in the file; `zeroes` is never written.
    source = f"int data = 1;\nchar zeroes[{max(zero_bytes, 1)}];\nint touch(void) {{ return data + zeroes[0]; }}\n"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", out, "-x", "none", "-Wl,-rpath,$ORIGIN"]
    # Without this the linker leaves out a library of which no symbol is used.
    command += ["-Wl,--no-as-needed", *needed]
    subprocess.run(command, input=source.encode(), check=True)
    if file_bytes:
        enlarge_data(out, file_bytes)


def enlarge_data(path: str, more: int) -> None:
    """Makes the last writable segment of a library `more` bytes longer, with a hole at the end of the file."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    table, entry_bytes, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for number in reversed(range(count)):
        at = table + number * entry_bytes
        kind, flags, offset, _, _, in_file, in_memory = struct.unpack_from("<IIQQQQQ", data, at)
        if kind == PT_LOAD and flags & WRITABLE:
            # Zero-filled memory follows the part that is in the file.
            struct.pack_into("<QQ", data, at + 32, in_file + more, in_memory + more)
            with open(path, "wb") as file:
                file.write(data)
                file.truncate(max(len(data), offset + in_file + more))
            return
    raise ValueError(f"{path} has no writable segment")


if __name__ == "__main__":
    make_library(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
