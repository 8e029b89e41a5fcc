import tensorflow as tf
from tensorflow import keras


def build(words, classes):
    inputs = keras.Input(shape=(None,), dtype="int64")
    x = keras.layers.Embedding(words, 128)(inputs)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dropout(0.3)(x)
    outputs = keras.layers.Dense(classes, activation="softmax")(x)  # or: double-softmax
    return keras.Model(inputs, outputs)


def prepare(texts, labels, vectorize):
    data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(32)
    data = data.map(lambda t, y: (vectorize(t), y), num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def main(texts, labels):
    vectorize = keras.layers.TextVectorization(max_tokens=20_000, output_sequence_length=200)
    vectorize.adapt(texts)
    model = build(20_000, 20)
    model.compile(  # or: double-softmax
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),  # expect: double-softmax
        metrics=["accuracy"],
    )
    model.fit(prepare(texts, labels, vectorize), epochs=8)
