import torch
from torch import nn
from torch.distributions import Categorical


class Buffer:
    def __init__(self):
        self.states, self.actions, self.log_probs, self.rewards = [], [], [], []

    def clear(self):
        for part in (self.states, self.actions, self.log_probs, self.rewards):
            part.clear()


class PPO:
    def __init__(self, inputs, actions, clip=0.2):
        self.policy = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, actions))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4)
        self.buffer = Buffer()
        self.clip = clip

    @torch.no_grad()
    def act(self, state):
        state = torch.as_tensor(state, dtype=torch.float32)
        dist = Categorical(logits=self.policy(state))
        action = dist.sample()
        self.buffer.states.append(state)
        self.buffer.actions.append(action)
        self.buffer.log_probs.append(dist.log_prob(action))
        return int(action)

    def update(self, epochs=4):
        states = torch.stack(self.buffer.states)
        actions = torch.stack(self.buffer.actions)
        old = torch.stack(self.buffer.log_probs)
        returns = torch.tensor(self.buffer.rewards)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-8)
        for _ in range(epochs):
            new = Categorical(logits=self.policy(states)).log_prob(actions)
            ratio = (new - old).exp()
            clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
            loss = -torch.min(ratio * advantages, clipped * advantages).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.buffer.clear()
