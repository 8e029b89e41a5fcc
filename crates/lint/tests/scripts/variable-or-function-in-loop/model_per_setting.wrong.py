import numpy as np
from sklearn.model_selection import ParameterGrid
from tensorflow import keras

# 36 settings
GRID = {"units": [16, 32, 64, 128], "lr": [1e-2, 1e-3, 1e-4], "dropout": [0.0, 0.2, 0.5]}


def main(x, y):
    scores = {}
    for number, setting in enumerate(ParameterGrid(GRID)):
        model = keras.Sequential([  # expect: variable-or-function-in-loop
            keras.layers.Dense(setting["units"], activation="relu", input_shape=(x.shape[1],)),
            keras.layers.Dropout(setting["dropout"]),
            keras.layers.Dense(1),
        ])
        model.compile(optimizer=keras.optimizers.Adam(setting["lr"]), loss="mse")
        history = model.fit(x, y, validation_split=0.2, epochs=20, verbose=0)
        scores[number] = min(history.history["val_loss"])
    best = min(scores, key=scores.get)
    print("best setting", list(ParameterGrid(GRID))[best], scores[best])


if __name__ == "__main__":
    main(np.random.rand(500, 12).astype("float32"), np.random.rand(500, 1).astype("float32"))
