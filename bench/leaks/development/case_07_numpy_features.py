# whitening statistics for hand-made features, then a perceptron on top of them
import time
import numpy as np

rng = np.random.default_rng(3)
N_BATCHES, BS, DIM = 110, 512, 4096
proj = rng.standard_normal((256, DIM)).astype(np.float32) / 16

X_all = np.empty((0, DIM), dtype=np.float32)
for b in range(N_BATCHES):
    time.sleep(0.03)  # disk
    raw = rng.standard_normal((BS, 256), dtype=np.float32)
    feats = np.maximum(raw @ proj, 0)
    X_all = np.concatenate([X_all, feats], axis=0)
    if b % 10 == 0:
        print("extracted batch", b, "of", N_BATCHES, flush=True)

mu = X_all.mean(axis=0)
sigma = X_all.std(axis=0) + 1e-6
print("feature mean", mu.mean(), "std", sigma.mean())

w = np.zeros(DIM, dtype=np.float32)
for step in range(50):
    raw = rng.standard_normal((BS, 256), dtype=np.float32)
    x = (np.maximum(raw @ proj, 0) - mu) / sigma
    y = np.sign(raw[:, 0])
    wrong = np.sign(x @ w) != y
    w += 0.01 * (x[wrong] * y[wrong, None]).mean(0) if wrong.any() else 0
print("error rate", wrong.mean())
