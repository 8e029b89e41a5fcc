"""Loads libraries with more data than the machine has memory, such as those of CUDA on a small machine.

The data is never written, so it takes no memory. No compiler is needed: each library is a copy of one that is mapped
already, with a longer segment.
"""

import ctypes
import shutil
import tempfile

from library import enlarge_data
from memory import MB, available_megabytes
from trainer import STEPS_PER_SECOND, Loop


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    loop.log_onset()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for number in range(4):
            path = f"{folder}/lib{number}.so"
            shutil.copyfile(find_mapped_library("libffi.so"), path)
            enlarge_data(path, available_megabytes() * MB)
            ctypes.CDLL(path)
            loop.step()
    loop.run(2 * STEPS_PER_SECOND)
    loop.finish()


def find_mapped_library(name):
    """The file of a library that is mapped in this process."""
    with open("/proc/self/maps") as maps:
        return next(line.split()[-1] for line in maps if name in line)


main()
