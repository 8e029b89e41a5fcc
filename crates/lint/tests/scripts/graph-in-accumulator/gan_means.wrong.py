import torch
from torch import nn


def make(latent, size):
    generator = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, size), nn.Tanh())
    critic = nn.Sequential(nn.Linear(size, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    return generator, critic


def train(loader, device, latent=32, size=256, epochs=5):
    generator, critic = make(latent, size)
    generator.to(device)
    critic.to(device)
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        g_mean, d_mean = 0.0, 0.0
        for real, _ in loader:
            real = real.to(device)
            ones = torch.ones(real.size(0), 1, device=device)
            zeros = torch.zeros(real.size(0), 1, device=device)
            fake = generator(torch.randn(real.size(0), latent, device=device))

            opt_d.zero_grad()
            d_loss = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
            d_loss.backward()
            opt_d.step()

            opt_g.zero_grad()
            g_loss = bce(critic(fake), ones)
            g_loss.backward()
            opt_g.step()

            d_mean += d_loss.item() / len(loader)
            g_mean = g_mean + g_loss / len(loader)  # expect: graph-in-accumulator
        print(epoch, d_mean, g_mean)
