"""Keras: a batch whose activations do not fit. The exception can be caught.

    antifreeze run --budget 1500MB -- python keras_batch_bad.py
"""

import numpy
import tensorflow as tf

model = tf.keras.Sequential(
    [tf.keras.Input((16,)), tf.keras.layers.Dense(4096, "relu"), tf.keras.layers.Dense(1)]
)
model.compile("adam", "mse")
images, labels = numpy.zeros((262_144, 16), "float32"), numpy.zeros((262_144, 1), "float32")
try:
    model.fit(images, labels, batch_size=262_144, verbose=0)
except tf.errors.ResourceExhaustedError:
    print("too large for the memory: going on with a batch of 1024")
    model.fit(images[:32_768], labels[:32_768], batch_size=1024, verbose=0)
print("done")
