# Cases of map-not-parallel; crates/lint/tests/support/cases.rs describes the format.

# ======== augment.wrong.py ========
import tensorflow as tf

IMAGE = (128, 128)
BATCH = 64


def load(path):
    image = tf.io.decode_png(tf.io.read_file(path), channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    label = tf.strings.split(path, "/")[-2]
    return tf.image.resize(image, IMAGE), tf.strings.to_number(label, tf.int32)


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.1), label


def pipeline(pattern):
    files = tf.data.Dataset.list_files(pattern, shuffle=True)
    data = files.map(load)  # expect: map-not-parallel
    data = data.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(32, 3, activation="relu", input_shape=IMAGE + (3,)),
    tf.keras.layers.MaxPooling2D(),
    tf.keras.layers.Conv2D(64, 3, activation="relu"),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(12, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(pipeline("leaves/*/*.png"), epochs=10)

# ======== augment.right.py ========
import tensorflow as tf

IMAGE = (128, 128)
BATCH = 64


def load(path):
    image = tf.io.decode_png(tf.io.read_file(path), channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    label = tf.strings.split(path, "/")[-2]
    return tf.image.resize(image, IMAGE), tf.strings.to_number(label, tf.int32)


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.1), label


def pipeline(pattern):
    files = tf.data.Dataset.list_files(pattern, shuffle=True)
    data = files.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(32, 3, activation="relu", input_shape=IMAGE + (3,)),
    tf.keras.layers.MaxPooling2D(),
    tf.keras.layers.Conv2D(64, 3, activation="relu"),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(12, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(pipeline("leaves/*/*.png"), epochs=10)

# ======== chain_in_function.wrong.py ========
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers


def standardise(x, y):
    x = tf.cast(x, tf.float32)
    return (x - tf.reduce_mean(x)) / (tf.math.reduce_std(x) + 1e-6), y


def dataset(x, y, batch_size):
    return (
        tf.data.Dataset.from_tensor_slices((x, y))  # or: map-not-parallel
        .shuffle(len(x))
        .map(standardise)  # expect: map-not-parallel
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

# ======== chain_in_function.right.py ========
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

# ======== preprocess_images.wrong.py ========
"""Trains with a light model; preparing the pictures takes longer than the step."""
import tensorflow as tf
from tensorflow import keras


class Pipeline:
    def __init__(self, size=180, batch_size=32):
        self.size = size
        self.batch_size = batch_size

    def prepare(self, image, label):
        image = tf.image.resize_with_pad(image, self.size, self.size)
        image = tf.image.random_flip_left_right(image)
        return image / 255.0, label

    def build(self, images, labels):
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.map(self.prepare).batch(self.batch_size).prefetch(tf.data.AUTOTUNE)  # expect: map-not-parallel
        return dataset


def train(images, labels, classes):
    model = keras.Sequential([
        keras.layers.Conv2D(16, 3, activation="relu", input_shape=(180, 180, 3)),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(classes),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    model.fit(Pipeline().build(images, labels), epochs=10)
    return model

# ======== preprocess_images.right.py ========
"""Trains with a light model; preparing the pictures takes longer than the step."""
import tensorflow as tf
from tensorflow import keras


class Pipeline:
    def __init__(self, size=180, batch_size=32):
        self.size = size
        self.batch_size = batch_size

    def prepare(self, image, label):
        image = tf.image.resize_with_pad(image, self.size, self.size)
        image = tf.image.random_flip_left_right(image)
        return image / 255.0, label

    def build(self, images, labels):
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.map(self.prepare, num_parallel_calls=tf.data.AUTOTUNE)
        dataset = dataset.batch(self.batch_size).prefetch(tf.data.AUTOTUNE)
        return dataset


def train(images, labels, classes):
    model = keras.Sequential([
        keras.layers.Conv2D(16, 3, activation="relu", input_shape=(180, 180, 3)),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(classes),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    model.fit(Pipeline().build(images, labels), epochs=10)
    return model
