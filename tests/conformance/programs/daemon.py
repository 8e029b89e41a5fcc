"""A daemon in the classical way: it forks twice, leaves the session, and writes a file before it ends."""
import os
import sys
import time

print("started", flush=True)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
nowhere = os.open(os.devnull, os.O_RDWR)
for fd in range(3):
    os.dup2(nowhere, fd)
time.sleep(0.3)
with open("daemon.txt", "w") as file:
    file.write("done\n")
sys.exit(0)
