"""The picture itself is optimised; the network is frozen and its features are kept once."""
import torch
import torch.nn.functional as F
from torchvision.models import vgg19


def gram(x):
    flat = x.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[1:].numel()


def transfer(content, style, steps=300):
    features = vgg19(weights="DEFAULT").features[:20].eval()
    for parameter in features.parameters():
        parameter.requires_grad_(False)
    with torch.no_grad():
        wanted = features(content)
        texture = gram(features(style))
    picture = content.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([picture], lr=0.02)
    for step in range(steps):
        optimizer.zero_grad()
        found = features(picture)
        loss = F.mse_loss(found, wanted) + 1e4 * F.mse_loss(gram(found), texture)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())
    return picture.detach()
