# cause: memory-leak
# budget: 250MB
import functools
import time


@functools.lru_cache(maxsize=None)
def features(step):
    return b"x" * 2_000_000


for step in range(10**9):
    features(step)
    time.sleep(0.02)
