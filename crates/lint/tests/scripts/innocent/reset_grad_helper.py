import torch
import torch.nn.functional as F


class Solver:
    def __init__(self, generator, critic, lr=1e-4):
        self.G = generator
        self.D = critic
        self.g_optimizer = torch.optim.Adam(generator.parameters(), lr, (0.5, 0.999))
        self.d_optimizer = torch.optim.Adam(critic.parameters(), lr, (0.5, 0.999))

    def reset_grad(self):
        self.g_optimizer.zero_grad()
        self.d_optimizer.zero_grad()

    def train(self, loader, steps=100_000, every=5):
        data = iter(loader)
        for i in range(steps):
            try:
                real = next(data)
            except StopIteration:
                data = iter(loader)
                real = next(data)
            fake = self.G(torch.randn(real.size(0), 128))
            d_loss = F.relu(1 - self.D(real)).mean() + F.relu(1 + self.D(fake.detach())).mean()
            self.reset_grad()
            d_loss.backward()
            self.d_optimizer.step()
            if (i + 1) % every == 0:
                g_loss = -self.D(fake).mean()
                self.reset_grad()
                g_loss.backward()
                self.g_optimizer.step()
