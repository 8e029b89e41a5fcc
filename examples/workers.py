"""Four worker processes prepare data, and each of them leaks.

Without a limit they eat the memory four times as fast as one process would. Under a budget
each of them gets a MemoryError of its own; the pool lives and the parent says who failed.

    antifreeze run --budget 400MB -- python workers.py
"""

import multiprocessing
import time

WORKERS = 4
PIECE = 4 << 20
MOST = 300 << 20


def prepare(shard):
    """Reads a shard into memory and keeps every piece of it."""
    kept = []
    try:
        while len(kept) * PIECE < MOST:
            kept.append(bytearray(PIECE))
            time.sleep(0.03)
    except MemoryError:
        pieces = len(kept)
        kept.clear()
        return shard, pieces, True
    return shard, len(kept), False


def main():
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        results = pool.map(prepare, range(WORKERS), chunksize=1)
    for shard, pieces, refused in results:
        end = "refused" if refused else "read whole"
        print(f"shard {shard}: {pieces * PIECE >> 20} MB, {end}")
    too_large = sum(refused for _, _, refused in results)
    print(f"{too_large} of {WORKERS} shards were too large; all workers live")


if __name__ == "__main__":
    main()
