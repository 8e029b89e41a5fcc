"""Loads a whole dataset into memory, and reads it in chunks when it does not fit.

The plan is 20000 images of 224 x 224 in float32, 4 GB. Under a budget NumPy raises a
MemoryError at the line that asks for them, before any of them is touched.

    antifreeze run --budget 600MB -- python numpy_dataset.py
"""

import numpy as np

IMAGES, SIDE = 20_000, 224


def read(first, last):
    """Stands for decoding images from disk."""
    images = np.empty((last - first, SIDE, SIDE), dtype=np.float32)
    images[:] = np.arange(first, last, dtype=np.float32)[:, None, None]
    return images


def chunks():
    """The dataset in pieces as large as fit."""
    size, first = IMAGES, 0
    while first < IMAGES:
        try:
            images = read(first, min(first + size, IMAGES))
        except MemoryError as error:
            size //= 2
            print(f"{error}; trying {size} images at a time", flush=True)
            continue
        first += len(images)
        yield images


def main():
    total = pixels = 0
    for images in chunks():
        total += images.sum(dtype=np.float64)
        pixels += images.size
        print(f"{pixels // SIDE**2} images read", flush=True)
    print(f"done: mean {total / pixels:.1f}")


if __name__ == "__main__":
    main()
