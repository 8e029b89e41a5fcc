import tensorflow as tf

IMAGE = (128, 128)
BATCH = 64


def load(path):
    image = tf.io.decode_png(tf.io.read_file(path), channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    label = tf.strings.split(path, "/")[-2]
    return tf.image.resize(image, IMAGE), tf.strings.to_number(label, tf.int32)


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.1), label


def pipeline(pattern):
    files = tf.data.Dataset.list_files(pattern, shuffle=True)
    data = files.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(32, 3, activation="relu", input_shape=IMAGE + (3,)),
    tf.keras.layers.MaxPooling2D(),
    tf.keras.layers.Conv2D(64, 3, activation="relu"),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(12, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(pipeline("leaves/*/*.png"), epochs=10)
