import os

import cv2
import numpy as np
import tensorflow as tf

SIZE = 299


def read(path):
    image = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
    return cv2.resize(image, (SIZE, SIZE)).astype("float32") / 255.0


def load_folder(root):
    files, labels = [], []
    for number, name in enumerate(sorted(os.listdir(root))):
        for file in os.listdir(os.path.join(root, name)):
            files.append(os.path.join(root, name, file))
            labels.append(number)
    images = np.array(list(map(read, files)))  # expect: dataset-in-ram
    return images, np.array(labels)


def main(root="flowers"):
    x, y = load_folder(root)
    base = tf.keras.applications.InceptionV3(include_top=False, pooling="avg", input_shape=(SIZE, SIZE, 3))
    model = tf.keras.Sequential([base, tf.keras.layers.Dense(int(y.max()) + 1)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    model.fit(x, y, batch_size=16, epochs=3, validation_split=0.2)


if __name__ == "__main__":
    main()
