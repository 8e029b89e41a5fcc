# Cases of predict-in-loop; crates/lint/tests/support/cases.rs describes the format.

# ======== generate_text.wrong.py ========
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

# ======== generate_text.right.py ========
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
        probs = model(encode(text, index), training=False)[0].numpy()
        probs = probs.astype("float64") / probs.astype("float64").sum()
        text += letters[np.random.choice(len(letters), p=probs)]
    return text

# ======== q_learning.wrong.py ========
import random
from collections import deque

import numpy as np
from tensorflow import keras


class Agent:
    def __init__(self, state_size, actions):
        self.actions = actions
        self.memory = deque(maxlen=5000)
        self.epsilon = 1.0
        self.network = keras.Sequential([
            keras.layers.Dense(24, activation="relu", input_shape=(state_size,)),
            keras.layers.Dense(actions),
        ])
        self.network.compile(optimizer="adam", loss="mse")

    def act(self, state):
        if random.random() < self.epsilon:
            return random.randrange(self.actions)
        return int(np.argmax(self.network(state[None], training=False)[0]))

    def replay(self, size=32, gamma=0.95):
        states, goals = [], []
        for state, action, reward, following, done in random.sample(self.memory, size):
            goal = reward
            if not done:
                goal += gamma * np.max(self.network.predict(following[None], verbose=0)[0])  # expect: predict-in-loop
            target = np.zeros(self.actions, dtype="float32")
            target[action] = goal
            states.append(state)
            goals.append(target)
        self.network.fit(np.stack(states), np.stack(goals), epochs=1, verbose=0)
        self.epsilon = max(0.05, self.epsilon * 0.995)

# ======== q_learning.right.py ========
import random
from collections import deque

import numpy as np
from tensorflow import keras


class Agent:
    def __init__(self, state_size, actions):
        self.actions = actions
        self.memory = deque(maxlen=5000)
        self.epsilon = 1.0
        self.network = keras.Sequential([
            keras.layers.Dense(24, activation="relu", input_shape=(state_size,)),
            keras.layers.Dense(actions),
        ])
        self.network.compile(optimizer="adam", loss="mse")

    def act(self, state):
        if random.random() < self.epsilon:
            return random.randrange(self.actions)
        return int(np.argmax(self.network(state[None], training=False)[0]))

    def replay(self, size=32, gamma=0.95):
        states, goals = [], []
        for state, action, reward, following, done in random.sample(self.memory, size):
            goal = reward
            if not done:
                goal += gamma * np.max(self.network(following[None], training=False)[0])
            target = np.zeros(self.actions, dtype="float32")
            target[action] = goal
            states.append(state)
            goals.append(target)
        self.network.fit(np.stack(states), np.stack(goals), epochs=1, verbose=0)
        self.epsilon = max(0.05, self.epsilon * 0.995)

# ======== rows_one_by_one.wrong.py ========
import keras
import numpy as np
import pandas as pd


def train(frame):
    x = frame.drop(columns="load").to_numpy("float32")
    y = frame["load"].to_numpy("float32")
    model = keras.Sequential([
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer="adam", loss="mse")
    model.fit(x, y, epochs=20, batch_size=64, verbose=0)
    return model


def forecast(model, frame, hours=24 * 30):
    row = frame.drop(columns="load").to_numpy("float32")[-1]
    curve = []
    for hour in range(hours):
        row[0] = hour % 24
        value = model.predict(row.reshape(1, -1), verbose=0)[0, 0]  # expect: predict-in-loop
        row[1:] = np.append(row[2:], value)
        curve.append(float(value))
    return curve


if __name__ == "__main__":
    table = pd.read_csv("load.csv")
    print(max(forecast(train(table), table)))

# ======== rows_one_by_one.right.py ========
import keras
import numpy as np
import pandas as pd


def train(frame):
    x = frame.drop(columns="load").to_numpy("float32")
    y = frame["load"].to_numpy("float32")
    model = keras.Sequential([
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile(optimizer="adam", loss="mse")
    model.fit(x, y, epochs=20, batch_size=64, verbose=0)
    return model


def forecast(model, frame, hours=24 * 30):
    row = frame.drop(columns="load").to_numpy("float32")[-1]
    curve = []
    for hour in range(hours):
        row[0] = hour % 24
        value = float(model(row.reshape(1, -1), training=False)[0, 0])
        row[1:] = np.append(row[2:], value)
        curve.append(value)
    return curve


if __name__ == "__main__":
    table = pd.read_csv("load.csv")
    print(max(forecast(train(table), table)))
