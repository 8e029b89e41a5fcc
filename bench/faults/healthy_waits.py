# cause: none
# ask: 80
"""Waits until its turn comes: nobody else keeps it."""
import time

print("now", flush=True)
time.sleep(3600)
