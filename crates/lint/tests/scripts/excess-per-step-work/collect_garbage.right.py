import tensorflow as tf


def run_epoch(model, optimizer, loss_fn, dataset):
    mean = tf.keras.metrics.Mean()
    for images, labels in dataset:
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, model(images, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        mean.update_state(loss)
    return float(mean.result())


def main(dataset, epochs=15):
    model = tf.keras.applications.MobileNetV2(weights=None, classes=50, classifier_activation=None)
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(epochs):
        print(epoch, run_epoch(model, optimizer, loss_fn, dataset))
    model.save("mobile.keras")
