# cause: none
# budget: 400MB
import time

cache = {}
for number in range(600):
    cache[number % 120] = bytes(1_000_000)
    time.sleep(0.01)
