import os

import pandas as pd
from sklearn.preprocessing import StandardScaler
from tensorflow import keras


def read_days(folder):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".csv"))
    days = [pd.read_csv(os.path.join(folder, name)) for name in names]  # or: dataset-in-ram
    return pd.concat(days, ignore_index=True)  # expect: dataset-in-ram


def build(columns):
    model = keras.Sequential([
        keras.layers.Dense(64, activation="relu", input_shape=(columns,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer="adam", loss="mae")
    return model


def main(folder="telemetry"):
    table = read_days(folder)
    target = table.pop("power").to_numpy("float32")
    inputs = StandardScaler().fit_transform(table.to_numpy("float32"))
    model = build(inputs.shape[1])
    model.fit(inputs, target, batch_size=512, epochs=10, validation_split=0.1)
    model.save("power.keras")


if __name__ == "__main__":
    main()
