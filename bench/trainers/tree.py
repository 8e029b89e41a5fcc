"""A calm trainer: a tree of N processes that wake twice a second, until standard input ends.

tree.py N [MEGABYTES] [CHURN_FROM CHURN_TO]: the root holds so many megabytes; from and to
these seconds it starts short-lived processes all the time.
"""

import os
import select
import sys
import time

BREATH = 0.5


def work():
    return sum(i * i for i in range(5_000))


def child(parent):
    while os.getppid() == parent:
        work()
        time.sleep(BREATH)
    os._exit(0)


def short_lived():
    pid = os.fork()
    if pid == 0:
        time.sleep(0.15)
        os._exit(0)
    return pid


def main():
    count = int(sys.argv[1])
    # Written, not only asked for: each page has a byte of its own.
    held = bytearray(b"x") * (int(sys.argv[2]) << 20) if len(sys.argv) > 2 else None
    churn = tuple(map(float, sys.argv[3:5])) or (0, 0)
    parent = os.getpid()
    children = []
    for _ in range(count - 1):
        pid = os.fork()
        if pid == 0:
            child(parent)
        children.append(pid)
    began = time.monotonic()
    while True:
        churning = churn[0] <= time.monotonic() - began < churn[1]
        ready, _, _ = select.select([0], [], [], 0.05 if churning else BREATH)
        if ready and not os.read(0, 1):
            break
        if churning:
            os.waitpid(short_lived(), 0)
        work()
    for pid in children:
        os.kill(pid, 9)
    for pid in children:
        os.waitpid(pid, 0)
    del held


main()
