import torch
import torch.nn.functional as F
from torch import nn


class Actor(nn.Module):
    def __init__(self, inputs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, actions))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


def update(actor, critic, actor_opt, critic_opt, batch):
    state, action, returns = batch
    value = critic(state).squeeze(-1)
    critic_loss = F.mse_loss(value, returns)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    advantage = returns - value.detach()
    policy_loss = -(actor(state).log_prob(action) * advantage).mean()
    actor_opt.zero_grad()
    policy_loss.backward()
    actor_opt.step()
    return critic_loss.item(), policy_loss.item()


def main(batches, inputs=8, actions=4):
    actor = Actor(inputs, actions)
    critic = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 1))
    actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for batch in batches:
        update(actor, critic, actor_opt, critic_opt, batch)
