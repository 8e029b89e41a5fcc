# cause: deadlock
# ask: 80
# needs: torch
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(size=64):
    optimizer.zero_grad()
    loss = model(torch.randn(size, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

import os
import threading
import time

for number in range(100):
    step()
    time.sleep(0.02)
lock = threading.Lock()


def hold():
    with lock:
        time.sleep(3)


threading.Thread(target=hold).start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    lock.acquire()
    os._exit(0)
print("now", flush=True)
os.waitpid(child, 0)
