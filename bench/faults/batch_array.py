# cause: batch-too-large
# budget: 500MB
# needs: numpy
import time

import numpy as np

time.sleep(1)
pairs = np.zeros((40_000, 40_000))
pairs[:] = 1
