# cause: memory-leak
# budget: 250MB
import ctypes
import time

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
while True:
    block = libc.malloc(ctypes.c_size_t(3_000_000))
    if not block:
        raise MemoryError("malloc")
    ctypes.memset(block, 1, 3_000_000)
    time.sleep(0.02)
