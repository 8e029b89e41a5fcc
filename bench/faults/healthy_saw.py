# cause: none
# budget: 400MB
import time

for number in range(40):
    batch = [bytearray(1_000_000) for _ in range(100)]
    time.sleep(0.05)
    del batch
