import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

rng = np.random.default_rng(0)
x_train = rng.random((640, 64, 64, 3), dtype=np.float32)
y_train = (x_train[:, :, :, 0].mean((1, 2)) > 0.5).astype("int64")
x_test = rng.random((900, 64, 64, 3), dtype=np.float32)
y_test = (x_test[:, :, :, 0].mean((1, 2)) > 0.5).astype("int64")

inp = layers.Input((64, 64, 3))
h = layers.Conv2D(12, 3, padding="same", activation="relu")(inp)
h = layers.Conv2D(12, 3, padding="same", activation="relu")(h)
h = layers.Conv2D(12, 3, padding="same", activation="relu")(h)
h = layers.Conv2D(12, 3, padding="same", activation="relu")(h)
h = layers.Conv2D(12, 3, padding="same", activation="relu")(h)
h = layers.GlobalAveragePooling2D()(h)
model = tf.keras.Model(inp, layers.Dense(2)(h))
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
opt = tf.keras.optimizers.Adam(1e-3)

for epoch in range(2):
    for i in range(0, len(x_train), 32):
        with tf.GradientTape() as tape:
            loss = loss_fn(y_train[i:i + 32], model(x_train[i:i + 32], training=True))
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        if i % 320 == 0:
            print("epoch", epoch, "seen", i, "loss", float(loss), flush=True)

    logits = model(x_test, training=False)
    acc = np.mean(np.argmax(logits, axis=1) == y_test)
    print("epoch", epoch, "test accuracy", acc, flush=True)
