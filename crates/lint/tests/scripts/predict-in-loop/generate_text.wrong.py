import numpy as np
from tensorflow import keras

LENGTH = 40


def build(characters):
    model = keras.Sequential([
        keras.layers.LSTM(128, input_shape=(LENGTH, characters)),
        keras.layers.Dense(characters, activation="softmax"),
    ])
    model.compile(optimizer="rmsprop", loss="categorical_crossentropy")
    return model


def encode(text, index):
    x = np.zeros((1, LENGTH, len(index)), dtype="float32")
    for place, letter in enumerate(text[-LENGTH:]):
        x[0, place, index[letter]] = 1.0
    return x


def write(model, seed, letters, count=400):
    index = {letter: number for number, letter in enumerate(letters)}
    text = seed
    for _ in range(count):
        probs = model.predict(encode(text, index), verbose=0)[0]  # expect: predict-in-loop
        probs = probs.astype("float64") / probs.astype("float64").sum()
        text += letters[np.random.choice(len(letters), p=probs)]
    return text
