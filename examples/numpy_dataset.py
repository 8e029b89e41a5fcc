"""Loads a whole dataset into memory, or reads it in chunks if it does not fit.

The dataset has 20000 images of 224 x 224 in float32, 4 GB. Under a budget NumPy raises
MemoryError at the line that allocates them, before any of them is written.

    antifreeze run --budget 600MB -- python numpy_dataset.py
"""

import numpy as np

IMAGES, SIDE = 20_000, 224


def read(first, last):
    """Stands for decoding images from disk."""
    images = np.empty((last - first, SIDE, SIDE), dtype=np.float32)
    images[:] = np.arange(first, last, dtype=np.float32)[:, None, None]
    return images


def brightness(first, last):
    """The sum over all pixels; the images are gone when it returns."""
    return read(first, last).sum(dtype=np.float64)


def main():
    total, first, chunk = 0.0, 0, IMAGES
    while first < IMAGES:
        last = min(first + chunk, IMAGES)
        try:
            total += brightness(first, last)
        except MemoryError as error:
            chunk //= 2
            print(f"{error}; going on with {chunk} images at a time", flush=True)
            continue
        first = last
        print(f"{first} of {IMAGES} images read", flush=True)
    print(f"done: mean {total / (IMAGES * SIDE**2):.1f}")


if __name__ == "__main__":
    main()
