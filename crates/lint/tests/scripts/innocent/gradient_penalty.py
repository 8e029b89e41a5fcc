import torch


def penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    grads = torch.autograd.grad(score.sum(), between, create_graph=True)[0]
    return ((grads.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def train(generator, critic, loader, latent=128, critic_steps=5, device="cuda"):
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    for i, (real, _) in enumerate(loader):
        real = real.to(device)
        fake = generator(torch.randn(real.size(0), latent, device=device))
        opt_d.zero_grad()
        d_loss = critic(fake.detach()).mean() - critic(real).mean()
        d_loss = d_loss + 10 * penalty(critic, real, fake.detach())
        d_loss.backward()
        opt_d.step()
        if (i + 1) % critic_steps == 0:
            opt_g.zero_grad()
            g_loss = -critic(generator(torch.randn(real.size(0), latent, device=device))).mean()
            g_loss.backward()
            opt_g.step()
