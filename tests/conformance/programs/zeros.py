"""Four arrays of zeros, each of which fits into memory, and all of which together do not."""

import mmap

with open("/proc/meminfo") as file:
    available = [int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable")][0]
zeros = [bytes(available // 3) for _ in range(4)]
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
sparse = mmap.mmap(-1, 1 << 40, flags=flags)
sparse[1 << 39] = 7
print("allocated", len(zeros), sparse[1 << 39])
