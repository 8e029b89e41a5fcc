import threading

threading.stack_size(1 << 20)
counted = []
barrier = threading.Barrier(65)


def count(number):
    counted.append(number)
    barrier.wait()


for number in range(64):
    threading.Thread(target=count, args=(number,)).start()
barrier.wait()
print(sorted(counted) == list(range(64)))
