import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast
from tqdm import tqdm


def train(model, loader, epochs, lr):
    device = torch.device("cuda")
    model.to(device)
    scaler = GradScaler()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    stats = {"loss": 0.0, "seen": 0}
    for epoch in range(epochs):
        stats["loss"], stats["seen"] = 0.0, 0
        bar = tqdm(loader, desc=f"epoch {epoch}")
        for images, labels in bar:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            stats["loss"] += loss.item() * labels.size(0)
            stats["seen"] += labels.size(0)
        bar.close()
        print("mean", stats["loss"] / stats["seen"])
    return model
