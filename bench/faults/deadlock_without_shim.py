# cause: deadlock
# ask: 80
# python: -I
import threading

first, second = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def take(one, other):
    with one:
        both.wait()
        with other:
            print("never")


print("now", flush=True)
thread = threading.Thread(target=take, args=(first, second))
thread.start()
take(second, first)
