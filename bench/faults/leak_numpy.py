# cause: memory-leak
# budget: 400MB
# needs: numpy
import time

import numpy as np

outputs = None
while True:
    new = np.random.rand(200, 1000)
    outputs = new if outputs is None else np.concatenate([outputs, new])
    time.sleep(0.01)
