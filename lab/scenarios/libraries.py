"""Loads libraries with more data than the machine has memory, as CUDA's are beside a small one.

None of the data is written to, so that they take no memory. A compiler is not needed: each is a copy of a library that is
mapped already, with a longer segment.
"""

import ctypes
import shutil
import tempfile

from library import widen
from memory import MB, available
from trainer import STEPS_A_SECOND, Loop


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    loop.onset()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for number in range(4):
            path = f"{folder}/lib{number}.so"
            shutil.copyfile(mapped("libffi.so"), path)
            widen(path, available() * MB)
            ctypes.CDLL(path)
            loop.step()
    loop.run(2 * STEPS_A_SECOND)
    loop.finish()


def mapped(name):
    """The file of a library that this process has mapped."""
    with open("/proc/self/maps") as maps:
        return next(line.split()[-1] for line in maps if name in line)


main()
