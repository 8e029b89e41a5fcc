import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, inputs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, actions))

    def forward(self, state):
        return nn.functional.softmax(self.net(state), dim=-1)


def update(policy, optimizer, states, actions, advantages, beta=0.01):
    probs = policy(states)
    chosen = probs.gather(1, actions.unsqueeze(1)).squeeze(1)
    log_chosen = chosen.clamp(min=1e-8).log()
    loss = -(log_chosen * advantages).mean() - beta * (1 - probs.pow(2).sum(dim=1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(collect, inputs, actions, rounds=1000):
    policy = Policy(inputs, actions)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for number in range(rounds):
        value = update(policy, optimizer, *collect(policy))
        if number % 50 == 0:
            print(number, value)
