# cause: dataset-in-memory
# budget: 300MB
# needs: numpy
import os
import time

import numpy as np

for number in range(60):
    np.save(f"part-{number}.npy", np.random.rand(700, 1000))
samples = []
for number in range(60):
    samples.append(np.load(f"part-{number}.npy"))
    time.sleep(0.03)
