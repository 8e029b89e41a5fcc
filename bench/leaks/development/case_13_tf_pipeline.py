import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import time
import numpy as np
import tensorflow as tf

N, IMG, BATCH = 8000, 128, 32


def read_file(i):
    time.sleep(0.0015)        # disk
    return np.int32(i)


def load_example(i):
    i = tf.ensure_shape(tf.numpy_function(read_file, [i], tf.int32), ())
    seed = tf.stack([i, i + 1])
    img = tf.random.stateless_uniform((IMG, IMG, 3), seed, maxval=256, dtype=tf.int32)
    img = tf.cast(img, tf.float32) / 255.0
    return img, tf.cast(i % 5, tf.int32)


def augment(img, label):
    return tf.image.random_flip_left_right(img), label


ds = (tf.data.Dataset.range(N, output_type=tf.int32)
      .shuffle(N)
      .map(load_example, num_parallel_calls=2)
      .cache()
      .map(augment, num_parallel_calls=2)
      .batch(BATCH)
      .prefetch(2))

model = tf.keras.Sequential([
    tf.keras.layers.Input((IMG, IMG, 3)),
    tf.keras.layers.AveragePooling2D(8),
    tf.keras.layers.Conv2D(8, 3, activation="relu"),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(5),
])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class Progress(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 25 == 0:
            print("batch", batch, "loss", round(logs["loss"], 4), flush=True)


model.fit(ds, epochs=2, verbose=0, callbacks=[Progress()])
