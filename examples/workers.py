"""Four worker processes prepare data, and each of them leaks.

Without a limit they fill the memory four times as fast as one process. Under a budget each
of them gets its own MemoryError; the pool survives and the parent prints which ones failed.

    antifreeze run --budget 400MB -- python workers.py
"""

import multiprocessing
import time

WORKERS = 4
PIECE_BYTES = 4 << 20
SHARD_BYTES = 300 << 20


def prepare(shard):
    """Reads a shard into memory and keeps every piece of it."""
    kept = []
    try:
        while len(kept) * PIECE_BYTES < SHARD_BYTES:
            kept.append(bytearray(PIECE_BYTES))
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
        print(f"shard {shard}: {pieces * PIECE_BYTES >> 20} MB, {end}")
    too_large = sum(refused for _, _, refused in results)
    print(f"{too_large} of {WORKERS} shards were too large; all workers live")


if __name__ == "__main__":
    main()
