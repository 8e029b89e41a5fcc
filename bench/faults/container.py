# cause: container-limit
# memory: 400M
import time

parts = []
for number in range(4):
    parts.append(bytearray(150_000_000))
time.sleep(30)
