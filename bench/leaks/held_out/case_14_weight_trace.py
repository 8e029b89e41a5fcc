"""Plain numpy MLP; keeps a json-able trace of the training for a web viewer."""
import json
import time
import numpy as np

np.random.seed(0)
D_IN, D_H, D_OUT, LR = 256, 400, 10, 0.05
W1 = np.random.randn(D_IN, D_H) * 0.05
W2 = np.random.randn(D_H, D_OUT) * 0.05
TRACE = []


def record(step, loss, g1):
    global TRACE
    TRACE.append({
        "step": step,
        "loss": float(loss),
        "weights": W1.ravel().tolist(),
        "grads": g1.ravel().tolist(),
    })


def sgd_step(x, y):
    global W1, W2
    h = np.tanh(x @ W1)
    z = h @ W2
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y] + 1e-12).mean()
    dz = p
    dz[np.arange(len(y)), y] -= 1
    dz /= len(y)
    g2 = h.T @ dz
    g1 = x.T @ ((dz @ W2.T) * (1 - h ** 2))
    W1 = W1 - LR * g1
    W2 = W2 - LR * g2
    return loss, g1


for step in range(230):
    time.sleep(0.02)
    xb = np.random.randn(512, D_IN)
    yb = (xb[:, 0] > 0).astype(int)
    loss, g1 = sgd_step(xb, yb)
    record(step, loss, g1)
    if step % 20 == 0:
        print(f"step={step} loss={loss:.4f}", flush=True)

summary = [{"step": t["step"], "loss": t["loss"], "gmax": max(t["grads"])} for t in TRACE]
print("trace entries", len(summary), "last", json.dumps(summary[-1]))
