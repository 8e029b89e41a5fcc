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
