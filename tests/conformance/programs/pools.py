import multiprocessing
import os
import sys
from multiprocessing import shared_memory


def square(number):
    return number * number


def fail(number):
    raise ValueError(number)


def put(queue, event):
    event.wait()
    queue.put(os.getppid() > 1)


def die():
    os.kill(os.getpid(), 9)


def main():
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(square, range(8)))
        try:
            pool.map(fail, [3])
        except ValueError as error:
            print("caught", error)
    queue, event = context.Queue(), context.Event()
    child = context.Process(target=put, args=(queue, event))
    child.start()
    event.set()
    print(queue.get(), child.join(), child.exitcode)
    child = context.Process(target=die)
    child.start()
    child.join()
    print(child.exitcode)
    block = shared_memory.SharedMemory(create=True, size=100000)
    block.buf[:3] = b"abc"
    other = shared_memory.SharedMemory(block.name)
    print(bytes(other.buf[:3]))
    other.close()
    block.close()
    block.unlink()


if __name__ == "__main__":
    main()
