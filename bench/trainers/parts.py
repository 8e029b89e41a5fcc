"""What `antifreeze.step` costs where all fits: blocks of steps with it and without, in turns.

    parts.py FOLDER_OF_THE_PACKAGE ROUNDS

Prints one JSON list of rounds: seconds of a step with it, and without.
"""

import json
import sys
import time

sys.path.insert(0, sys.argv[1])

import antifreeze
import torch

STEPS = 20

torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = torch.randn(64, 256)


def forward(batch):
    return model(batch).pow(2).sum(), len(batch)


def with_it():
    optimizer.zero_grad()
    antifreeze.step(forward, batch)
    optimizer.step()


def without():
    optimizer.zero_grad()
    loss, count = forward(batch)
    (loss / count).backward()
    optimizer.step()


def seconds(step):
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - began) / STEPS


seconds(with_it), seconds(without)
print(json.dumps([(seconds(with_it), seconds(without)) for _ in range(int(sys.argv[2]))]))
