import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import time
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
SHUFFLE_BUFFER = 50_000
paths = ["img_%05d.jpg" % i for i in range(8500)]


def slow_disk(p):
    time.sleep(0.0015)
    return p


def read_image(path):
    # synthetic stand-in for tf.io.read_file + decode_jpeg + resize
    path = tf.ensure_shape(tf.numpy_function(slow_disk, [path], tf.string), ())
    h = tf.strings.to_hash_bucket_fast(path, 1 << 30)
    img = tf.random.stateless_uniform((128, 128, 3), tf.stack([h, h]))
    return img, tf.cast(h % 4, tf.int32)


def get_dataset(batch_size=64):
    ds = tf.data.Dataset.from_tensor_slices(paths)
    ds = ds.map(read_image, num_parallel_calls=2)
    ds = ds.shuffle(SHUFFLE_BUFFER)
    ds = ds.batch(batch_size)
    return ds.prefetch(1)


inputs = tf.keras.Input((128, 128, 3))
x = tf.keras.layers.AveragePooling2D(4)(inputs)
x = tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu")(x)
x = tf.keras.layers.GlobalMaxPooling2D()(x)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(4)(x))
optimizer = tf.keras.optimizers.SGD(0.01)
loss_obj = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step_fn(img, lab):
    with tf.GradientTape() as tape:
        loss = loss_obj(lab, model(img, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))
    return loss


print("start training", flush=True)
for n, (img, lab) in enumerate(get_dataset()):
    loss = step_fn(img, lab)
    if n % 20 == 0:
        tf.print("batch", n, "loss", loss)
print("done", n + 1, "batches")
