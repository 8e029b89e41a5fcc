"""Meets a limit that it has set itself, and catches the error."""
import resource

resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
try:
    bytearray(2 << 30)
except MemoryError as error:
    print("caught", type(error).__name__, flush=True)
print(len(bytearray(1 << 20)))
