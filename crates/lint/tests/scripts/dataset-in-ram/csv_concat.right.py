import os

import pandas as pd
from tensorflow import keras

COLUMNS = 24


def read_days(folder, rows=512):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".csv"))
    while True:
        for name in names:
            for part in pd.read_csv(os.path.join(folder, name), chunksize=rows):
                target = part.pop("power").to_numpy("float32")
                yield part.to_numpy("float32"), target


def build(columns):
    model = keras.Sequential([
        keras.layers.Dense(64, activation="relu", input_shape=(columns,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer="adam", loss="mae")
    return model


def main(folder="telemetry"):
    model = build(COLUMNS)
    model.fit(read_days(folder), steps_per_epoch=2000, epochs=10)
    model.save("power.keras")


if __name__ == "__main__":
    main()
