"""What the shim costs, measured from within one guarded run, so that all else is the same.

    steps.py start ROUNDS     seconds of `python -c pass`, with the shim and without, in turns
    steps.py cost ROUNDS      seconds of a block of training steps: with the shim, without, and without again

Prints one JSON list of rounds. `steps.py work` is what the blocks are made by: it reads the size of a batch
and the number of steps, and says how long they took.
"""

import json
import os
import subprocess
import sys
import time

STEPS = 20
ROUNDS_OF_A_CREW = 120
# A step should take a millisecond.
STEP = 0.001


def without_shim():
    """The environment as it is, but for the folder that brings the shim."""
    paths = os.environ.get("PYTHONPATH", "").split(":")
    return {**os.environ, "PYTHONPATH": ":".join(path for path in paths if "/shim-" not in path)}


# What is imported is kept compiled, as it is for people.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def start(rounds):
    def seconds(environment):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)
        return time.perf_counter() - began

    for environment in (os.environ, without_shim()):
        seconds(environment)
    return [(seconds(os.environ), seconds(without_shim())) for _ in range(rounds)]


class Worker:
    def __init__(self, environment):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "work"], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )

    def seconds(self, batch, steps=STEPS):
        self.process.stdin.write(f"{batch} {steps}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def cost(rounds):
    """Each crew of workers makes a part of the rounds: where a process has its memory is luck that lasts as
    long as it does."""
    found = []
    while len(found) < rounds:
        workers = [Worker(os.environ), Worker(without_shim()), Worker(without_shim())]
        batch = 8
        for worker in workers:
            worker.seconds(batch, 100)
        while workers[1].seconds(batch, 100) / 100 < STEP:
            batch = batch * 5 // 4 + 1
        for turn in range(ROUNDS_OF_A_CREW):
            times = [0.0] * len(workers)
            for number in range(len(workers)):
                number = (number + turn) % len(workers)
                times[number] = workers[number].seconds(batch)
            found.append(times)
        for worker in workers:
            worker.end()
    return found


def work():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for line in sys.stdin:
        batch, steps = map(int, line.split())
        rows = TensorDataset(torch.randn(batch * steps, 128), torch.randint(0, 10, (batch * steps,)))
        loader = DataLoader(rows, batch_size=None, sampler=[range(i * batch, (i + 1) * batch) for i in range(steps)])
        began = time.perf_counter()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(inputs), labels)
            loss.backward()
            optimizer.step()
        print(time.perf_counter() - began, flush=True)


if sys.argv[1] == "work":
    work()
else:
    print(json.dumps({"start": start, "cost": cost}[sys.argv[1]](int(sys.argv[2]))))
