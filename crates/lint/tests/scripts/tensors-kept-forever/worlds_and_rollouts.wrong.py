"""Learns a model of a pendulum from its own rollouts."""
import math

import torch
import torch.nn as nn


class Pendulum:
    def __init__(self, batch, dt=0.05):
        self.batch, self.dt = batch, dt

    def reset(self):
        angle = (torch.rand(self.batch) * 2 - 1) * math.pi
        return torch.stack([angle, torch.zeros(self.batch)], dim=1)

    def step(self, state, torque):
        angle, speed = state.unbind(dim=1)
        speed = (speed + (9.8 * torch.sin(angle) + torque) * self.dt).clamp(-8, 8)
        return torch.stack([angle + speed * self.dt, speed], dim=1)


class Dynamics(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, state, torque):
        return state + self.net(torch.cat([state, torque.unsqueeze(1)], dim=1))


class Learner:
    def __init__(self, batch=4096):
        self.world = Pendulum(batch)
        self.model = Dynamics()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.visited = []

    def learn_step(self, state):
        torque = torch.randn(state.size(0))
        following = self.world.step(state, torque)
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(state, torque), following)
        loss.backward()
        self.optimizer.step()
        self.visited.append(following)  # expect: tensors-kept-forever
        return following, loss.item()

    def run(self, episodes=10_000, horizon=200):
        for episode in range(episodes):
            state, total = self.world.reset(), 0.0
            for _ in range(horizon):
                state, value = self.learn_step(state)
                total += value
            if episode % 100 == 0:
                spread = self.visited[-1].std(dim=0).tolist()
                print(episode, total / horizon, spread)


if __name__ == "__main__":
    Learner().run()
