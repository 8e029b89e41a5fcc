# cause: deadlock
# ask: 80
"""A child that is forked while another thread holds a lock waits for it for ever, and its parent for the child."""
import os
import threading
import time

lock = threading.Lock()


def hold():
    with lock:
        time.sleep(2)


threading.Thread(target=hold).start()
time.sleep(0.5)
child = os.fork()
if child == 0:
    with lock:
        os._exit(0)
print("now", flush=True)
os.waitpid(child, 0)
