import numpy as np
from tensorflow import keras

SAMPLES = 200_000
COLUMNS = 1000


def build():
    model = keras.Sequential([
        keras.Input(shape=(COLUMNS,)),
        keras.layers.Dense(16_384, activation="relu"),
        keras.layers.Dense(16_384, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    rng = np.random.default_rng(1)
    x_train = rng.random((SAMPLES, COLUMNS), dtype=np.float32)
    y_train = rng.integers(0, 10, SAMPLES)
    model = build()
    model.fit(x_train, y_train, batch_size=100_000, epochs=10)  # expect: batch-too-large-here
    model.save("wide.keras")


if __name__ == "__main__":
    main()
