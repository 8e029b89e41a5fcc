import torch
import torch.nn.functional as F


def weighted_bce(logits, target, weight):
    raw = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return raw * (1 + weight * target)


def train_epoch(model, loader, optimizer, device, weight=3.0):
    model.train()
    for image, target in loader:
        image, target = image.to(device), target.to(device)
        logits = model(image)
        loss = weighted_bce(logits, target, weight)
        optimizer.zero_grad()
        loss.backward()  # expect: nonscalar-backward
        optimizer.step()


def main(model, loader):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(20):
        train_epoch(model, loader, optimizer, device)
        torch.save(model.state_dict(), "lesions.pt")
