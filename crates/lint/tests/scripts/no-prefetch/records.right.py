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
