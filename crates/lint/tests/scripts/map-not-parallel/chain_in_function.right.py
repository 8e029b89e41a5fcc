import numpy as np
import tensorflow as tf
from tensorflow.keras import layers


def standardise(x, y):
    x = tf.cast(x, tf.float32)
    return (x - tf.reduce_mean(x)) / (tf.math.reduce_std(x) + 1e-6), y


def dataset(x, y, batch_size):
    return (
        tf.data.Dataset.from_tensor_slices((x, y))
        .shuffle(len(x))
        .map(standardise, num_parallel_calls=tf.data.AUTOTUNE)
        .batch(batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )


def main():
    archive = np.load("signals.npz")
    model = tf.keras.Sequential([
        layers.Conv1D(32, 9, activation="relu", input_shape=(1024, 2)),
        layers.MaxPooling1D(4),
        layers.LSTM(64),
        layers.Dense(11, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(dataset(archive["x"], archive["y"], 128), epochs=40)


if __name__ == "__main__":
    main()
