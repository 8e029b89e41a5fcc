# Cases of persistent-tape; crates/lint/tests/support/cases.rs describes the format.

# ======== custom_train_step.wrong.py ========
from tensorflow import keras
import tensorflow as tf


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.encoder_optimizer = keras.optimizers.Adam(1e-3)
        self.decoder_optimizer = keras.optimizers.Adam(1e-3)
        self.total = keras.metrics.Mean(name="loss")

    def train_step(self, data):
        with tf.GradientTape(persistent=True) as tape:  # expect: persistent-tape
            mean, log_var = self.encoder(data)
            z = mean + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mean))
            rebuilt = self.decoder(z)
            kl = -0.5 * tf.reduce_mean(1 + log_var - tf.square(mean) - tf.exp(log_var))
            loss = tf.reduce_mean(tf.square(data - rebuilt)) + kl
        encoder_grads = tape.gradient(loss, self.encoder.trainable_weights)
        decoder_grads = tape.gradient(loss, self.decoder.trainable_weights)
        self.encoder_optimizer.apply_gradients(zip(encoder_grads, self.encoder.trainable_weights))
        self.decoder_optimizer.apply_gradients(zip(decoder_grads, self.decoder.trainable_weights))
        self.total.update_state(loss)
        return {"loss": self.total.result()}


def main(encoder, decoder, data):
    vae = VAE(encoder, decoder)
    vae.compile()
    vae.fit(data, epochs=30)

# ======== custom_train_step.right.py ========
from tensorflow import keras
import tensorflow as tf


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.encoder_optimizer = keras.optimizers.Adam(1e-3)
        self.decoder_optimizer = keras.optimizers.Adam(1e-3)
        self.total = keras.metrics.Mean(name="loss")

    def train_step(self, data):
        with tf.GradientTape(persistent=True) as tape:
            mean, log_var = self.encoder(data)
            z = mean + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mean))
            rebuilt = self.decoder(z)
            kl = -0.5 * tf.reduce_mean(1 + log_var - tf.square(mean) - tf.exp(log_var))
            loss = tf.reduce_mean(tf.square(data - rebuilt)) + kl
        encoder_grads = tape.gradient(loss, self.encoder.trainable_weights)
        decoder_grads = tape.gradient(loss, self.decoder.trainable_weights)
        del tape
        self.encoder_optimizer.apply_gradients(zip(encoder_grads, self.encoder.trainable_weights))
        self.decoder_optimizer.apply_gradients(zip(decoder_grads, self.decoder.trainable_weights))
        self.total.update_state(loss)
        return {"loss": self.total.result()}


def main(encoder, decoder, data):
    vae = VAE(encoder, decoder)
    vae.compile()
    vae.fit(data, epochs=30)

# ======== gan_step.wrong.py ========
import tensorflow as tf
from tensorflow.keras import layers

latent = 64
generator = tf.keras.Sequential([
    layers.Dense(256, activation="relu", input_shape=(latent,)),
    layers.Dense(784, activation="tanh"),
])
critic = tf.keras.Sequential([
    layers.Dense(256, activation="relu", input_shape=(784,)),
    layers.Dense(1),
])
g_opt = tf.keras.optimizers.Adam(1e-4)
d_opt = tf.keras.optimizers.Adam(1e-4)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)


def train_step(real):
    noise = tf.random.normal((tf.shape(real)[0], latent))
    with tf.GradientTape(persistent=True) as tape:  # expect: persistent-tape
        fake = generator(noise, training=True)
        real_score = critic(real, training=True)
        fake_score = critic(fake, training=True)
        g_loss = bce(tf.ones_like(fake_score), fake_score)
        d_loss = bce(tf.ones_like(real_score), real_score) + bce(tf.zeros_like(fake_score), fake_score)
    g_grads = tape.gradient(g_loss, generator.trainable_variables)
    d_grads = tape.gradient(d_loss, critic.trainable_variables)
    g_opt.apply_gradients(zip(g_grads, generator.trainable_variables))
    d_opt.apply_gradients(zip(d_grads, critic.trainable_variables))
    return g_loss, d_loss


def train(dataset, epochs):
    for epoch in range(epochs):
        for real in dataset:
            g_loss, d_loss = train_step(real)
        print(epoch, float(g_loss), float(d_loss))

# ======== gan_step.right.py ========
import tensorflow as tf
from tensorflow.keras import layers

latent = 64
generator = tf.keras.Sequential([
    layers.Dense(256, activation="relu", input_shape=(latent,)),
    layers.Dense(784, activation="tanh"),
])
critic = tf.keras.Sequential([
    layers.Dense(256, activation="relu", input_shape=(784,)),
    layers.Dense(1),
])
g_opt = tf.keras.optimizers.Adam(1e-4)
d_opt = tf.keras.optimizers.Adam(1e-4)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)


def train_step(real):
    noise = tf.random.normal((tf.shape(real)[0], latent))
    with tf.GradientTape(persistent=True) as tape:
        fake = generator(noise, training=True)
        real_score = critic(real, training=True)
        fake_score = critic(fake, training=True)
        g_loss = bce(tf.ones_like(fake_score), fake_score)
        d_loss = bce(tf.ones_like(real_score), real_score) + bce(tf.zeros_like(fake_score), fake_score)
    g_grads = tape.gradient(g_loss, generator.trainable_variables)
    d_grads = tape.gradient(d_loss, critic.trainable_variables)
    del tape
    g_opt.apply_gradients(zip(g_grads, generator.trainable_variables))
    d_opt.apply_gradients(zip(d_grads, critic.trainable_variables))
    return g_loss, d_loss


def train(dataset, epochs):
    for epoch in range(epochs):
        for real in dataset:
            g_loss, d_loss = train_step(real)
        print(epoch, float(g_loss), float(d_loss))

# ======== second_derivative.wrong.py ========
"""Heat equation: the network has to satisfy u_t = u_xx."""
import tensorflow as tf

net = tf.keras.Sequential([
    tf.keras.layers.Dense(32, activation="tanh", input_shape=(2,)),
    tf.keras.layers.Dense(32, activation="tanh"),
    tf.keras.layers.Dense(1),
])
optimizer = tf.keras.optimizers.Adam(1e-3)


def residual(x, t):
    with tf.GradientTape(persistent=True) as tape:  # expect: persistent-tape
        tape.watch([x, t])
        u = net(tf.concat([x, t], axis=1))
        u_x = tape.gradient(u, x)
    u_t = tape.gradient(u, t)
    u_xx = tape.gradient(u_x, x)
    return tf.reduce_mean(tf.square(u_t - u_xx))


def train(steps=5000, points=256):
    for step in range(steps):
        x, t = tf.random.uniform((points, 1)), tf.random.uniform((points, 1))
        with tf.GradientTape() as outer:
            loss = residual(x, t)
        grads = outer.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(grads, net.trainable_variables))
        if step % 500 == 0:
            print(step, float(loss))


if __name__ == "__main__":
    train()

# ======== second_derivative.right.py ========
"""Heat equation: the network has to satisfy u_t = u_xx."""
import tensorflow as tf

net = tf.keras.Sequential([
    tf.keras.layers.Dense(32, activation="tanh", input_shape=(2,)),
    tf.keras.layers.Dense(32, activation="tanh"),
    tf.keras.layers.Dense(1),
])
optimizer = tf.keras.optimizers.Adam(1e-3)


def residual(x, t):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, t])
        u = net(tf.concat([x, t], axis=1))
        u_x = tape.gradient(u, x)
    u_t = tape.gradient(u, t)
    u_xx = tape.gradient(u_x, x)
    del tape
    return tf.reduce_mean(tf.square(u_t - u_xx))


def train(steps=5000, points=256):
    for step in range(steps):
        x, t = tf.random.uniform((points, 1)), tf.random.uniform((points, 1))
        with tf.GradientTape() as outer:
            loss = residual(x, t)
        grads = outer.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(grads, net.trainable_variables))
        if step % 500 == 0:
            print(step, float(loss))


if __name__ == "__main__":
    train()
