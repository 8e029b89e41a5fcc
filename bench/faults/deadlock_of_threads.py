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

import threading
import time

for number in range(100):
    step()
    time.sleep(0.02)
print("now", flush=True)
one, two = threading.Lock(), threading.Lock()


def other():
    with two:
        time.sleep(0.5)
        with one:
            pass


threading.Thread(target=other, daemon=True).start()
with one:
    time.sleep(0.5)
    with two:
        pass
