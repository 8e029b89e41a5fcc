# cause: cpu-oversubscribed
import multiprocessing
import time


def work(until):
    while time.monotonic() < until:
        sum(range(10_000))


if __name__ == "__main__":
    until = time.monotonic() + 30
    processes = [multiprocessing.Process(target=work, args=(until,)) for _ in range(24)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
