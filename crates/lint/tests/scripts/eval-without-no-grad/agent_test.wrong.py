import random
from collections import deque

import torch
from torch import nn


class DQN:
    def __init__(self, observations, actions, device):
        self.device = device
        self.online = self.build(observations, actions).to(device)
        self.memory = deque(maxlen=100_000)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-4)

    @staticmethod
    def build(observations, actions):
        return nn.Sequential(nn.Linear(observations, 64), nn.ReLU(), nn.Linear(64, actions))

    def learn(self, batch_size=64, gamma=0.99):
        sample = random.sample(self.memory, batch_size)
        state, action, reward, following, done = (torch.stack(part).to(self.device) for part in zip(*sample))
        value = self.online(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            future = self.online(following).max(dim=1).values
        loss = nn.functional.smooth_l1_loss(value, reward + gamma * future * (1 - done))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def test(self, env, episodes=10):  # or: eval-without-no-grad
        self.online.eval()
        returns = []
        for _ in range(episodes):
            state, _ = env.reset()
            total, done = 0.0, False
            while not done:
                values = self.online(torch.as_tensor(state, device=self.device))  # expect: eval-without-no-grad
                state, reward, ended, cut, _ = env.step(int(values.argmax()))
                total += reward
                done = ended or cut
            returns.append(total)
        self.online.train()
        return sum(returns) / episodes
