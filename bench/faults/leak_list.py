# cause: memory-leak
# budget: 250MB
import time

history = []
while True:
    history.append(bytearray(4_000_000))
    time.sleep(0.03)
