"""The critic's pass is used again by the generator, so the graph has to stay."""
import torch
from torch import nn


def train(generator, critic, loader, latent=64, epochs=10):
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for real, _ in loader:
            fake = generator(torch.randn(real.size(0), latent))
            real_score = critic(real)
            fake_score = critic(fake)
            d_loss = bce(real_score, torch.ones_like(real_score)) + bce(fake_score, torch.zeros_like(fake_score))
            g_loss = bce(fake_score, torch.ones_like(fake_score))
            opt_d.zero_grad()
            d_loss.backward(retain_graph=True, inputs=list(critic.parameters()))
            opt_g.zero_grad()
            g_loss.backward(inputs=list(generator.parameters()))
            opt_d.step()
            opt_g.step()
        print(epoch, d_loss.item(), g_loss.item())
