# cause: other-process
# memory: 1500M
# reserve: 300M
# neighbour: 1000M
"""Trains with little, while somebody else takes what is left for a while."""
import time

weights = bytearray(250_000_000)
end = time.monotonic() + 60
while time.monotonic() < end:
    for index in range(0, len(weights), 4096):
        weights[index] = 1
    time.sleep(0.05)
