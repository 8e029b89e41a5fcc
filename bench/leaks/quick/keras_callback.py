import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
from tensorflow import keras


class Outputs(keras.callbacks.Callback):
    def __init__(self, samples):
        super().__init__()
        self.samples, self.outputs = samples, []

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.05)
        self.outputs.append(self.model(self.samples).numpy())

    def on_train_end(self, logs=None):
        print("change", float(np.abs(self.outputs[-1] - self.outputs[0]).mean()))


keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(2048)])
model.compile(optimizer="sgd", loss="mse")
samples = np.random.rand(1024, 64).astype("float32")
model.fit(samples, np.zeros((1024, 2048), "float32"), batch_size=8, verbose=0, callbacks=[Outputs(samples)])
