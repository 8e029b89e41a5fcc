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
