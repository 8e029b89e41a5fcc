import torch
import torch.nn.functional as F

ACCUMULATE = 8


def train_epoch(model, loader, optimizer, device):
    model.train()
    optimizer.zero_grad()
    steps = len(loader)
    for index, (images, masks) in enumerate(loader):
        images, masks = images.to(device), masks.to(device)
        logits = model(images)
        loss = F.cross_entropy(logits, masks)
        loss.backward()  # expect: accumulation-without-division
        if (index + 1) % ACCUMULATE == 0 or index + 1 == steps:
            optimizer.step()
            optimizer.zero_grad()


def main(model, loader):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(50):
        train_epoch(model, loader, optimizer, device)
        torch.save({"epoch": epoch, "model": model.state_dict()}, "last.pt")
