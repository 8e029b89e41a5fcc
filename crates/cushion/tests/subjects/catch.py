"""Runs into the wall in the way argv[1] names, handles the error as a training script
would, and goes on. Prints "survived" when all of that worked."""
import os
import sys


def many_small(held):
    while True:
        held.append(bytes(200))


def megabytes(held):
    while True:
        held.append(bytearray(1 << 20))


def one_large(held):
    held.append(bytearray(4 << 30))


def meet_the_wall(way, report):
    held = []
    try:
        way(held)
    except MemoryError:
        # Imported only here: at the wall there is no room for it without the cushion.
        import traceback
        text = traceback.format_exc()
        with open(report, "w") as file:
            file.write(text)
        assert way.__name__ in text
    held.clear()
    after = [bytes(200) for _ in range(1000)]
    after.append(bytearray(16 << 20))


if __name__ == "__main__":
    way = globals()[sys.argv[1]]
    report = sys.argv[2]
    times = int(sys.argv[3])
    for turn in range(times):
        meet_the_wall(way, report)
        assert os.path.getsize(report) > 0
        os.unlink(report)
        for name in ("traceback", "linecache", "tokenize"):
            sys.modules.pop(name, None)
        print("caught", turn + 1, flush=True)
        if turn + 1 < times:
            sys.stdin.readline()
    print("survived")
