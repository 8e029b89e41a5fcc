import numpy as np
from tensorflow import keras


def load():
    archive = np.load("galaxies.npz")
    return archive["images"], archive["classes"]


def build(shape, classes):
    inputs = keras.Input(shape=shape)
    x = keras.layers.Rescaling(1 / 255)(inputs)
    x = keras.layers.Conv2D(32, 3, activation="relu")(x)
    x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.Conv2D(64, 3, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(classes, activation="softmax")(x))


def main():
    x_train, y_train = load()
    model = build(x_train.shape[1:], 10)
    model.compile(optimizer="rmsprop", loss="sparse_categorical_crossentropy")
    model.fit(x_train, y_train, batch_size=len(x_train), epochs=50)  # expect: full-batch
    model.save("galaxies.keras")


if __name__ == "__main__":
    main()
