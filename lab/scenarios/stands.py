"""Two threads that deadlock: each waits for the lock that the other holds."""

import threading

from trainer import Loop


def main():
    loop = Loop(base=20)
    loop.warm_up()
    loop.log_onset()
    first, second = threading.Lock(), threading.Lock()
    both = threading.Barrier(2)

    def take(one, other):
        with one:
            both.wait()
            other.acquire()

    threading.Thread(target=take, args=(first, second), daemon=True).start()
    take(second, first)


main()
