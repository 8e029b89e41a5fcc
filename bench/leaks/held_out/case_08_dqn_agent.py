import random
import time
import numpy as np
import torch
import torch.nn as nn


class FakeAtari:
    """random frames with the shapes of an Atari wrapper"""
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.t = 0

    def reset(self):
        self.t = 0
        return self._obs()

    def _obs(self):
        return self.rng.random((4, 84, 84), dtype=np.float32)

    def step(self, action):
        self.t += 1
        time.sleep(0.002)     # the emulator
        return self._obs(), self.rng.normal(), self.t >= 200

    def render(self):
        return self.rng.integers(0, 255, (400, 320, 3), dtype=np.uint8)


class ReplayMemory:
    def __init__(self):
        self.memory = []

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, k):
        return [np.stack(c) if isinstance(c[0], np.ndarray) else np.array(c)
                for c in zip(*random.sample(self.memory, k))]

    def __len__(self):
        return len(self.memory)


class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Conv2d(4, 8, 8, 4), nn.ReLU(), nn.Conv2d(8, 16, 4, 2), nn.ReLU(),
                               nn.Flatten(), nn.Linear(16 * 9 * 9, 6))
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-4)
        self.memory = ReplayMemory()
        self.frames = []          # for the video of the run
        self.eps = 1.0

    @torch.no_grad()
    def act(self, obs):
        if random.random() < self.eps:
            return random.randrange(6)
        return self.q(torch.from_numpy(obs)[None]).argmax().item()

    def learn(self, k=32, gamma=0.99):
        s, a, r, s2, d = self.memory.sample(k)
        s, s2 = torch.from_numpy(s), torch.from_numpy(s2)
        a = torch.as_tensor(a).view(-1, 1)
        r, d = torch.as_tensor(r, dtype=torch.float32), torch.as_tensor(d, dtype=torch.float32)
        with torch.no_grad():
            target = r + gamma * (1 - d) * self.q(s2).max(1).values
        loss = nn.functional.smooth_l1_loss(self.q(s).gather(1, a).squeeze(1), target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def run(total_steps=3300):
    env, agent = FakeAtari(), Agent()
    obs, episode, loss = env.reset(), 0, 0.0
    for t in range(total_steps):
        a = agent.act(obs)
        nxt, rew, done = env.step(a)
        agent.memory.push(obs.copy(), a, rew, nxt.copy(), done)
        agent.frames.append(env.render())
        obs = nxt
        if t > 200 and t % 20 == 0:
            loss = agent.learn()
        if done:
            print(f"episode {episode} steps {t + 1} loss {loss:.4f} eps {agent.eps:.2f}", flush=True)
            episode += 1
            agent.eps = max(0.1, agent.eps * 0.9)
            obs = env.reset()
    print("frames of the last episode for the gif:", len(agent.frames[-200:]))


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    run()
