import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import time
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers


class ReconstructionMonitor(keras.callbacks.Callback):
    """Watch how the reconstructions of a fixed set of images change."""

    def __init__(self, images):
        super().__init__()
        self.images = images
        self.snapshots = []

    def on_train_batch_end(self, batch, logs=None):
        out = self.model(self.images, training=False).numpy()
        self.snapshots.append(out)
        if batch % 10 == 0:
            delta = np.abs(out - self.images).mean()
            print(f"  batch {batch}: mean abs error {delta:.4f}", flush=True)

    def on_train_end(self, logs=None):
        first, last = self.snapshots[0], self.snapshots[-1]
        print("total change", float(np.abs(first - last).mean()))


class Images(keras.utils.PyDataset):
    def __len__(self):
        return 45

    def __getitem__(self, i):
        time.sleep(0.05)      # decoding
        x = np.random.rand(32, 64, 64, 3).astype("float32")
        return x, x


x_watch = np.random.rand(256, 64, 64, 3).astype("float32")

ae = keras.Sequential([
    keras.Input((64, 64, 3)),
    layers.Flatten(),
    layers.Dense(32, activation="relu"),
    layers.Dense(64 * 64 * 3, activation="sigmoid"),
    layers.Reshape((64, 64, 3)),
])
ae.compile(optimizer="adam", loss="mse")
ae.fit(Images(), epochs=3, verbose=0,
       callbacks=[ReconstructionMonitor(x_watch)])
