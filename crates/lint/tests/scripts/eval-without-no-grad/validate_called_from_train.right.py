import torch
from torch import nn
from torch.utils.data import DataLoader


def validate(model, loader, device):
    model.eval()
    hits, total = 0, 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            hits += (logits.argmax(dim=1) == labels).sum().item()
            total += labels.numel()
    return hits / max(total, 1)


def train(model, train_set, val_set, epochs=30):
    device = torch.device("cuda")
    model.to(device)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    best = 0.0
    for epoch in range(epochs):
        model.train()
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        scheduler.step()
        accuracy = validate(model, val_loader, device)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), "best.pt")
    return best
