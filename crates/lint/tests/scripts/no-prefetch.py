# Cases of no-prefetch; crates/lint/tests/support/cases.rs describes the format.

# ======== batch_ends_chain.wrong.py ========
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers


def decode(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, (160, 160)) / 255.0, label


def make_dataset(paths, labels, batch_size=32):
    data = tf.data.Dataset.from_tensor_slices((paths, labels))
    data = data.shuffle(2000).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(batch_size)  # expect: no-prefetch


def make_model(classes):
    base = keras.applications.MobileNetV2(include_top=False, pooling="avg", input_shape=(160, 160, 3))
    base.trainable = False
    return keras.Sequential([base, layers.Dropout(0.2), layers.Dense(classes)])


def main(paths, labels, classes):
    model = make_model(classes)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(make_dataset(paths, labels), epochs=5)
    model.save("pets.keras")

# ======== batch_ends_chain.right.py ========
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers


def decode(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, (160, 160)) / 255.0, label


def make_dataset(paths, labels, batch_size=32):
    data = tf.data.Dataset.from_tensor_slices((paths, labels))
    data = data.shuffle(2000).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def make_model(classes):
    base = keras.applications.MobileNetV2(include_top=False, pooling="avg", input_shape=(160, 160, 3))
    base.trainable = False
    return keras.Sequential([base, layers.Dropout(0.2), layers.Dense(classes)])


def main(paths, labels, classes):
    model = make_model(classes)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(make_dataset(paths, labels), epochs=5)
    model.save("pets.keras")

# ======== inline_in_loop.wrong.py ========
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

# ======== inline_in_loop.right.py ========
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
    slices = tf.data.Dataset.from_tensor_slices((images, labels))
    data = slices.batch(batch_size).prefetch(tf.data.AUTOTUNE)
    for epoch in range(epochs):
        for x, y in data:
            loss = train_step(model, optimizer, loss_fn, x, y)
        print(epoch, float(loss))


if __name__ == "__main__":
    main()

# ======== records.wrong.py ========
import tensorflow as tf
from tensorflow import keras

FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse(example):
    row = tf.io.parse_single_example(example, FEATURES)
    image = tf.io.decode_jpeg(row["image"], channels=3)
    return tf.image.resize(image, [224, 224]), row["label"]


def records(pattern, batch_size, training):
    files = tf.data.Dataset.list_files(pattern)
    data = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        data = data.shuffle(4096).repeat()
    data = data.batch(batch_size, drop_remainder=True)  # expect: no-prefetch
    return data  # or: no-prefetch


def main():
    model = keras.applications.ResNet50(weights=None, classes=1000)
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
    train = records("records/train-*", 64, training=True)
    val = records("records/val-*", 64, training=False)
    model.fit(train, steps_per_epoch=5000, epochs=90, validation_data=val)


if __name__ == "__main__":
    main()

# ======== records.right.py ========
import tensorflow as tf
from tensorflow import keras

FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse(example):
    row = tf.io.parse_single_example(example, FEATURES)
    image = tf.io.decode_jpeg(row["image"], channels=3)
    return tf.image.resize(image, [224, 224]), row["label"]


def records(pattern, batch_size, training):
    files = tf.data.Dataset.list_files(pattern)
    data = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        data = data.shuffle(4096).repeat()
    data = data.batch(batch_size, drop_remainder=True)
    return data.prefetch(tf.data.AUTOTUNE)


def main():
    model = keras.applications.ResNet50(weights=None, classes=1000)
    model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
    train = records("records/train-*", 64, training=True)
    val = records("records/val-*", 64, training=False)
    model.fit(train, steps_per_epoch=5000, epochs=90, validation_data=val)


if __name__ == "__main__":
    main()
