import time
import zlib
import numpy as np

H = W = 160
N = 1700


def write_fake_archive(n):
    """compressed images as they would lie in a zip file (smooth pictures compress well)"""
    rng = np.random.default_rng(0)
    ramp = np.linspace(0, 255, W)[None, :, None]
    out = []
    for i in range(n):
        colour = rng.integers(40, 255, 3)
        img = (ramp * colour / 255).astype(np.uint8)
        img = np.broadcast_to(img, (H, W, 3))
        out.append((zlib.compress(img.tobytes(), 1), int(colour[0] > colour[1])))
    return out


def load_images(archive):
    images, labels = [], []
    for i, (blob, lab) in enumerate(archive):
        time.sleep(0.004)     # zip archive on a network drive
        img = np.frombuffer(zlib.decompress(blob), np.uint8).reshape(H, W, 3)
        images.append(img / 255.0)
        labels.append(lab)
        if i % 200 == 0:
            print("loaded", i, "images", flush=True)
    return np.array(images), np.array(labels)


X, y = load_images(write_fake_archive(N))
print("dataset", X.shape)

w, b = np.zeros(H * W * 3), 0.0
for epoch in range(3):
    order = np.random.permutation(N)
    for k in range(0, N, 50):
        idx = order[k:k + 50]
        xb = X[idx].reshape(len(idx), -1)
        p = 1 / (1 + np.exp(-(xb @ w + b)))
        err = p - y[idx]
        w -= 1e-4 * xb.T @ err
        b -= 1e-4 * err.sum()
    print("epoch", epoch, "train acc", ((p > 0.5) == y[idx]).mean())
