import math

import joblib

print(joblib.Parallel(n_jobs=2)(joblib.delayed(math.sqrt)(number) for number in range(10)))
