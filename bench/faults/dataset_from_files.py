# cause: dataset-in-memory
# budget: 250MB
import os
import time

for number in range(80):
    with open(f"part-{number}", "wb") as file:
        file.write(os.urandom(4_000_000))
        os.fsync(file.fileno())
samples = []
for number in range(80):
    with open(f"part-{number}", "rb") as file:
        samples.append(file.read())
    time.sleep(0.03)
