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
