import torch
import torch.nn as nn


def nets(latent=100, pixels=784):
    generator = nn.Sequential(nn.Linear(latent, 256), nn.ReLU(), nn.Linear(256, pixels), nn.Tanh())
    critic = nn.Sequential(nn.Linear(pixels, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1), nn.Sigmoid())
    return generator, critic


def train(loader, epochs=10, latent=100):
    generator, critic = nets(latent)
    g_opt = torch.optim.Adam(generator.parameters(), lr=2e-4)
    d_opt = torch.optim.Adam(critic.parameters(), lr=2e-4)
    bce = nn.BCELoss()
    for epoch in range(epochs):
        for real, _ in loader:
            real = real.flatten(1)
            fake = generator(torch.randn(real.size(0), latent))
            d_opt.zero_grad()
            right, wrong = critic(real), critic(fake.detach())
            d_loss = bce(right, torch.ones_like(right)) + bce(wrong, torch.zeros_like(wrong))
            d_loss.backward()
            d_opt.step()

            g_opt.zero_grad()
            g_loss = -torch.log(critic(fake)).mean()  # expect: log-unguarded
            g_loss.backward()
            g_opt.step()
        print(epoch, d_loss.item(), g_loss.item())
