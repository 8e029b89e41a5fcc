import random
from collections import deque, namedtuple

import torch
from torch import nn

Step = namedtuple("Step", "state action reward following")


def learn(env, network, target, episodes=500, gamma=0.99, batch_size=64):
    memory = deque(maxlen=20_000)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for episode in range(episodes):
        state = torch.tensor(env.reset()[0])
        done = False
        while not done:
            with torch.no_grad():
                action = network(state).argmax()
            following, reward, ended, cut, _ = env.step(action.item())
            following = torch.tensor(following)
            done = ended or cut
            memory.append(Step(state, action, torch.tensor(float(reward)), following))
            state = following
            if len(memory) < batch_size:
                continue
            batch = Step(*(torch.stack(part) for part in zip(*random.sample(memory, batch_size))))
            with torch.no_grad():
                goal = batch.reward + gamma * target(batch.following).max(1).values
            value = network(batch.state).gather(1, batch.action.unsqueeze(1)).squeeze(1)
            loss = nn.functional.mse_loss(value, goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if episode % 10 == 0:
            target.load_state_dict(network.state_dict())
