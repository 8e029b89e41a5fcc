# cause: memory-leak
# budget: 250MB
import hashlib
import time

cache = {}
for number in range(10**9):
    cache[number] = hashlib.sha256(str(number).encode()).hexdigest() * 500
    if number % 50 == 0:
        time.sleep(0.01)
