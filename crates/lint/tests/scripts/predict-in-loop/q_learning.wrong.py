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
