"""Prints the size of each standard stream whenever that changes."""
import os
import signal


def changed(number, frame):
    print(*[tuple(os.get_terminal_size(fd)) for fd in range(3)], flush=True)
    print("ready", flush=True)


signal.signal(signal.SIGWINCH, changed)
signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
print("ready", flush=True)
while True:
    signal.pause()
