# Cases of variable-or-function-in-loop; crates/lint/tests/support/cases.rs describes the format.

# ======== decorated_inside.wrong.py ========
import tensorflow as tf


def adversarial(model, loss_fn, image, label, steps=40, size=0.01):
    delta = tf.zeros_like(image)
    for _ in range(steps):

        @tf.function  # expect: variable-or-function-in-loop
        def gradient(d):  # or: variable-or-function-in-loop
            with tf.GradientTape() as tape:
                tape.watch(d)
                loss = loss_fn(label, model(image + d, training=False))
            return tape.gradient(loss, d)

        delta = tf.clip_by_value(delta + size * tf.sign(gradient(delta)), -0.1, 0.1)
    return image + delta


def attack(model, dataset):
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy()
    fooled, total = 0, 0
    for image, label in dataset:
        changed = adversarial(model, loss_fn, image, label)
        guess = tf.argmax(model(changed, training=False), axis=1)
        fooled += int(tf.reduce_sum(tf.cast(guess != tf.cast(label, guess.dtype), tf.int32)))
        total += int(tf.shape(label)[0])
    print(fooled / total)

# ======== decorated_inside.right.py ========
import tensorflow as tf


@tf.function
def gradient(model, loss_fn, image, label, d):
    with tf.GradientTape() as tape:
        tape.watch(d)
        loss = loss_fn(label, model(image + d, training=False))
    return tape.gradient(loss, d)


def adversarial(model, loss_fn, image, label, steps=40, size=0.01):
    delta = tf.zeros_like(image)
    for _ in range(steps):
        slope = gradient(model, loss_fn, image, label, delta)
        delta = tf.clip_by_value(delta + size * tf.sign(slope), -0.1, 0.1)
    return image + delta


def attack(model, dataset):
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy()
    fooled, total = 0, 0
    for image, label in dataset:
        changed = adversarial(model, loss_fn, image, label)
        guess = tf.argmax(model(changed, training=False), axis=1)
        fooled += int(tf.reduce_sum(tf.cast(guess != tf.cast(label, guess.dtype), tf.int32)))
        total += int(tf.shape(label)[0])
    print(fooled / total)

# ======== function_per_batch.wrong.py ========
import tensorflow as tf


class Loop:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = tf.keras.optimizers.Adam(lr)
        self.loss_fn = tf.keras.losses.Huber()

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss_fn(y, self.model(x, training=True))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    def fit(self, dataset, epochs):
        mean = tf.keras.metrics.Mean()
        for epoch in range(epochs):
            mean.reset_state()
            for x, y in dataset:
                compiled = tf.function(self.step)  # expect: variable-or-function-in-loop
                mean.update_state(compiled(x, y))
            print(epoch, float(mean.result()))


def main(dataset):
    model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
    Loop(model).fit(dataset, epochs=10)

# ======== function_per_batch.right.py ========
import tensorflow as tf


class Loop:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = tf.keras.optimizers.Adam(lr)
        self.loss_fn = tf.keras.losses.Huber()

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss_fn(y, self.model(x, training=True))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    def fit(self, dataset, epochs):
        compiled = tf.function(self.step)
        mean = tf.keras.metrics.Mean()
        for epoch in range(epochs):
            mean.reset_state()
            for x, y in dataset:
                mean.update_state(compiled(x, y))
            print(epoch, float(mean.result()))


def main(dataset):
    model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
    Loop(model).fit(dataset, epochs=10)

# ======== model_per_setting.wrong.py ========
import numpy as np
from sklearn.model_selection import ParameterGrid
from tensorflow import keras

# 36 settings
GRID = {"units": [16, 32, 64, 128], "lr": [1e-2, 1e-3, 1e-4], "dropout": [0.0, 0.2, 0.5]}


def main(x, y):
    scores = {}
    for number, setting in enumerate(ParameterGrid(GRID)):
        model = keras.Sequential([  # expect: variable-or-function-in-loop
            keras.layers.Dense(setting["units"], activation="relu", input_shape=(x.shape[1],)),
            keras.layers.Dropout(setting["dropout"]),
            keras.layers.Dense(1),
        ])
        model.compile(optimizer=keras.optimizers.Adam(setting["lr"]), loss="mse")
        history = model.fit(x, y, validation_split=0.2, epochs=20, verbose=0)
        scores[number] = min(history.history["val_loss"])
    best = min(scores, key=scores.get)
    print("best setting", list(ParameterGrid(GRID))[best], scores[best])


if __name__ == "__main__":
    main(np.random.rand(500, 12).astype("float32"), np.random.rand(500, 1).astype("float32"))

# ======== model_per_setting.right.py ========
import numpy as np
from sklearn.model_selection import ParameterGrid
from tensorflow import keras

# 36 settings
GRID = {"units": [16, 32, 64, 128], "lr": [1e-2, 1e-3, 1e-4], "dropout": [0.0, 0.2, 0.5]}


def main(x, y):
    scores = {}
    for number, setting in enumerate(ParameterGrid(GRID)):
        keras.backend.clear_session()
        model = keras.Sequential([
            keras.layers.Dense(setting["units"], activation="relu", input_shape=(x.shape[1],)),
            keras.layers.Dropout(setting["dropout"]),
            keras.layers.Dense(1),
        ])
        model.compile(optimizer=keras.optimizers.Adam(setting["lr"]), loss="mse")
        history = model.fit(x, y, validation_split=0.2, epochs=20, verbose=0)
        scores[number] = min(history.history["val_loss"])
    best = min(scores, key=scores.get)
    print("best setting", list(ParameterGrid(GRID))[best], scores[best])


if __name__ == "__main__":
    main(np.random.rand(500, 12).astype("float32"), np.random.rand(500, 1).astype("float32"))

# ======== variable_per_step.wrong.py ========
import tensorflow as tf


def build(units):
    return tf.keras.Sequential([
        tf.keras.layers.Dense(units, activation="relu", input_shape=(40,)),
        tf.keras.layers.Dense(1),
    ])


def train(dataset, epochs=10, units=80):
    model = build(units)
    optimizer = tf.keras.optimizers.SGD(0.01)
    mse = tf.keras.losses.MeanSquaredError()
    for epoch in range(epochs):
        for features, target in dataset:
            scale = tf.Variable(1.0, trainable=True)  # expect: variable-or-function-in-loop
            with tf.GradientTape() as tape:
                predicted = model(features, training=True) * scale
                loss = mse(target, predicted)
            weights = model.trainable_variables + [scale]
            grads = tape.gradient(loss, weights)
            optimizer.apply_gradients(zip(grads, weights))
        print("epoch", epoch, "loss", float(loss))
    return model

# ======== variable_per_step.right.py ========
import tensorflow as tf


def build(units):
    return tf.keras.Sequential([
        tf.keras.layers.Dense(units, activation="relu", input_shape=(40,)),
        tf.keras.layers.Dense(1),
    ])


def train(dataset, epochs=10, units=80):
    model = build(units)
    optimizer = tf.keras.optimizers.SGD(0.01)
    mse = tf.keras.losses.MeanSquaredError()
    scale = tf.Variable(1.0, trainable=True)
    for epoch in range(epochs):
        for features, target in dataset:
            with tf.GradientTape() as tape:
                predicted = model(features, training=True) * scale
                loss = mse(target, predicted)
            weights = model.trainable_variables + [scale]
            grads = tape.gradient(loss, weights)
            optimizer.apply_gradients(zip(grads, weights))
        print("epoch", epoch, "loss", float(loss))
    return model
