"""A program of another user, which no guard may touch: bystander.py MEGABYTES.

Writes to each page of its working set once a second, and runs until SIGTERM.
"""

import os
import signal
import sys
import time

MB = 1 << 20
PAGE = 4096


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    held = bytearray()
    for _ in range(int(sys.argv[1])):
        held += os.urandom(MB)
    while True:
        for at in range(0, len(held), PAGE):
            held[at] ^= 1
        time.sleep(1)


main()
