from tensorflow import keras
from tensorflow.keras import layers


def block(x, filters, stride=1):
    x = layers.Conv2D(filters, 3, strides=stride, padding="same")(x)  # expect: bias-before-batchnorm
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def build(shape=(64, 64, 3), classes=12):
    inputs = keras.Input(shape)
    x = layers.Rescaling(1.0 / 255)(inputs)
    for filters in (32, 64, 128):
        x = block(x, filters)
        x = block(x, filters, stride=2)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(classes, activation="softmax")(x)
    return keras.Model(inputs, outputs)


def main(train, val):
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(train, validation_data=val, epochs=25)
    model.save("blocks.keras")
