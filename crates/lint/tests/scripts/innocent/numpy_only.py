import numpy as np


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def train(x, y, epochs=100, lr=0.1):
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=x.shape[1]), 0.0
    history = []
    for epoch in range(epochs):
        loss = 0.0
        for row, label in zip(x, y):
            p = sigmoid(row @ w + b)
            loss += -(label * np.log(p + 1e-12) + (1 - label) * np.log(1 - p + 1e-12))
            w -= lr * (p - label) * row
            b -= lr * (p - label)
        history.append(loss / len(x))
    return w, b, history


if __name__ == "__main__":
    data = np.random.default_rng(1).normal(size=(400, 5))
    print(train(data, (data.sum(axis=1) > 0).astype(float))[2][-1])
