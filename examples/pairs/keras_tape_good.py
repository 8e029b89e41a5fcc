"""TensorFlow: a custom training loop that keeps one number of every step.

    antifreeze run --budget 1200MB -- python keras_tape_good.py
"""

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((64,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(64)])
optimizer = tf.keras.optimizers.Adam()
kept = []
for step in range(60):
    inputs = tf.random.normal((32_768, 64))
    with tf.GradientTape() as tape:
        predictions = model(inputs)
        loss = tf.reduce_mean((predictions - inputs) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    kept.append(float(loss))
print("done")
