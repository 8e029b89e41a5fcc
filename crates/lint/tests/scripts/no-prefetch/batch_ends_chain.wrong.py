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
