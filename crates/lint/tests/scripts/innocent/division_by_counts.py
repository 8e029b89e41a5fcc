import torch
import torch.nn.functional as F


def masked_mean(loss, mask):
    return (loss * mask).sum() / mask.sum().clamp(min=1)


def dice(probs, target, smooth=1.0):
    overlap = (probs * target).sum()
    return 1 - (2 * overlap + smooth) / (probs.sum() + target.sum() + smooth)


def cosine(a, b):
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)).clamp_min(1e-8)


def train(model, loader, optimizer, temperature=0.1):
    for image, target, mask in loader:
        logits = model(image) / temperature
        raw = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        loss = masked_mean(raw, mask) + dice(torch.sigmoid(logits), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
