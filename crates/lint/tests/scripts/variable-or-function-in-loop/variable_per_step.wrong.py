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
