"""Collect one row per prediction in a table (structured array) while a ridge model is fitted online."""
import time
import numpy as np

ROW = np.dtype([("step", "i8"), ("sample", "i8"), ("y_true", "f8"), ("y_pred", "f8"), ("x", "f8", (32,))])
rng = np.random.default_rng(11)
w_true = rng.normal(size=32)


class OnlineRidge:
    def __init__(self, dim, lam=1.0):
        self.A = lam * np.eye(dim)
        self.b = np.zeros(dim)

    @property
    def coef(self):
        return np.linalg.solve(self.A, self.b)

    def partial_fit(self, X, y):
        self.A += X.T @ X
        self.b += X.T @ y
        return self


def make_rows(step, X, y, pred):
    rows = np.empty(len(y), dtype=ROW)
    rows["step"], rows["sample"] = step, np.arange(len(y))
    rows["y_true"], rows["y_pred"], rows["x"] = y, pred, X
    return rows


ridge = OnlineRidge(32)
table = np.empty(0, dtype=ROW)
for step in range(75):
    time.sleep(0.03)
    X = rng.normal(size=(50_000, 32))
    y = X @ w_true + rng.normal(scale=0.1, size=len(X))
    pred = X @ ridge.coef
    ridge.partial_fit(X, y)
    table = np.append(table, make_rows(step, X, y, pred))
    if step % 10 == 0:
        cur = table[table["step"] == step]
        print("step", step, "rmse", np.sqrt(np.mean((cur["y_true"] - cur["y_pred"]) ** 2)), flush=True)

for s in (0, 1, 74):
    part = table[table["step"] == s]
    print("rmse of step", s, np.sqrt(np.mean((part["y_true"] - part["y_pred"]) ** 2)))
