import torch
import torch.nn.functional as F

WINDOW = 100


def noise_like(shape, step):
    torch.manual_seed(step)
    return torch.randn(shape)


def denoise(model, optimizer, image, steps=10_000):
    """Deep image prior: the network learns one image from changing noise."""
    kept = []
    for step in range(steps):
        noise = noise_like((1, 32, 512, 512), step)
        if len(kept) >= WINDOW:
            del kept[0]
        kept.append(noise)
        optimizer.zero_grad()
        loss = F.mse_loss(model(noise), image)
        loss.backward()
        optimizer.step()
        if step % WINDOW == 0:
            spread = torch.stack(kept[-WINDOW:]).std()
            print(step, loss.item(), spread.item())
    return model


def main(model, image):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    denoise(model, optimizer, image)
    torch.save(model.state_dict(), "prior.pt")
