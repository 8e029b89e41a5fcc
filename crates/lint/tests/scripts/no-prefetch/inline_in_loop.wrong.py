import tensorflow as tf


def build():
    return tf.keras.Sequential([
        tf.keras.layers.Dense(128, activation="relu", input_shape=(28 * 28,)),
        tf.keras.layers.Dense(10),
    ])


@tf.function
def train_step(model, optimizer, loss_fn, x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def main(epochs=5, batch_size=64):
    (images, labels), _ = tf.keras.datasets.mnist.load_data()
    images = images.reshape(-1, 28 * 28).astype("float32") / 255
    model = build()
    optimizer = tf.keras.optimizers.Adam()
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(epochs):
        for x, y in tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch_size):  # expect: no-prefetch
            loss = train_step(model, optimizer, loss_fn, x, y)
        print(epoch, float(loss))


if __name__ == "__main__":
    main()
