"""A loader passes batches in shared memory, and never unlinks one.

The memory limit of a process does not include shared memory. The guard sees that the budget
is exceeded and asks the run to end by SIGTERM. On SIGTERM the script frees the shared
memory.

    antifreeze run --budget 200MB -- python shared_memory.py [SECONDS BETWEEN BATCHES]
"""

import signal
import sys
import time
from multiprocessing import shared_memory

BATCH = 8 << 20
BATCHES = 100


def leave(signum, frame):
    sys.exit("asked to end: giving the shared memory back")


def main():
    signal.signal(signal.SIGTERM, leave)
    pause = float(sys.argv[1]) if len(sys.argv) > 1 else 0.05
    batches = []
    try:
        for number in range(1, BATCHES + 1):
            batch = shared_memory.SharedMemory(create=True, size=BATCH)
            batches.append(batch)
            batch.buf[:] = bytes(BATCH)
            if number % 5 == 0:
                print(f"batch {number}: {number * BATCH >> 20} MB in shared memory", flush=True)
            time.sleep(pause)
        print("every batch fitted")
    finally:
        for batch in batches:
            batch.close()
            batch.unlink()


if __name__ == "__main__":
    main()
