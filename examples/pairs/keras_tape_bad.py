"""TensorFlow: a custom training loop that keeps the predictions of every step.

TensorFlow crashes when memory is refused, so the guard asks the run to end before that.

    antifreeze run --budget 1200MB -- python keras_tape_bad.py
"""

import time

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(64)])
optimizer = tf.keras.optimizers.Adam()
kept = []
for step in range(3000):
    inputs = tf.random.normal((32_768, 64))
    with tf.GradientTape() as tape:
        predictions = model(inputs)
        loss = tf.reduce_mean((predictions - inputs) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    kept.append(predictions)
    time.sleep(0.03)  # what a larger model would take
print("done")
