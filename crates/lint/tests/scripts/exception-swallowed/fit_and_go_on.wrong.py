"""Tries several networks one after the other and goes on, whatever happens."""
import tensorflow as tf


def build(width, depth):
    model = tf.keras.Sequential()
    model.add(tf.keras.Input(shape=(512,)))
    for _ in range(depth):
        model.add(tf.keras.layers.Dense(width, activation="relu"))
    model.add(tf.keras.layers.Dense(1))
    model.compile(optimizer="adam", loss="mse")
    return model


def attempt(x, y, width, depth):
    model = build(width, depth)
    try:
        history = model.fit(x, y, batch_size=64, epochs=5, verbose=0)
    except Exception as problem:  # expect: exception-swallowed
        print("something went wrong:", problem)
        return None
    return history.history["loss"][-1]


def main(x, y):
    results = {}
    for width, depth in ((256, 2), (1024, 4), (4096, 8)):
        results[width, depth] = attempt(x, y, width, depth)
    print(results)
