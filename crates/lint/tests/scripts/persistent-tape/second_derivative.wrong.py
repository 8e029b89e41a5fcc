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
