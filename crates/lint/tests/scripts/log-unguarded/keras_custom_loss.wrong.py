import tensorflow as tf
from tensorflow import keras


class WeightedCrossentropy(keras.losses.Loss):
    def __init__(self, weights, name="weighted_crossentropy"):
        super().__init__(name=name)
        self.weights = tf.constant(weights, dtype=tf.float32)

    def call(self, y_true, y_pred):
        probs = tf.nn.softmax(y_pred, axis=-1)
        each = -tf.reduce_sum(self.weights * y_true * tf.math.log(probs), axis=-1)  # expect: log-unguarded
        return tf.reduce_mean(each)


def build(tokens, classes):
    return keras.Sequential([
        keras.layers.Embedding(tokens, 64),
        keras.layers.Bidirectional(keras.layers.LSTM(64)),
        keras.layers.Dense(classes),
    ])


def main(train, validation):
    model = build(20_000, 4)
    model.compile("adam", loss=WeightedCrossentropy([1.0, 4.0, 4.0, 9.0]), metrics=["accuracy"])
    model.fit(train, validation_data=validation, epochs=4)
    return model
