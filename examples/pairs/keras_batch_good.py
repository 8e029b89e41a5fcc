"""Keras: a batch that fits.

    antifreeze run --budget 1500MB -- python keras_batch_good.py
"""

import numpy
import tensorflow as tf

model = tf.keras.Sequential(
    [tf.keras.Input((16,)), tf.keras.layers.Dense(4096, "relu"), tf.keras.layers.Dense(1)]
)
model.compile("adam", "mse")
images, labels = numpy.zeros((32_768, 16), "float32"), numpy.zeros((32_768, 1), "float32")
model.fit(images, labels, batch_size=1024, epochs=2, verbose=0)
print("done")
