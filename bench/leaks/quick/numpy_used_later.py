import time

import numpy as np

generator = np.random.default_rng(0)
weights = generator.standard_normal((512, 512))
outputs = []
for step in range(120):
    time.sleep(0.03)
    batch = generator.standard_normal((1024, 512))
    outputs.append(np.maximum(batch @ weights, 0))
means = [output.mean() for output in outputs]
print("mean", sum(means) / len(means))
