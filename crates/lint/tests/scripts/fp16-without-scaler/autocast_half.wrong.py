import torch
from torch import nn


def train(model, loader, epochs=10):
    device = torch.device("cuda")
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, total_steps=epochs * len(loader)
    )
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):  # expect: fp16-without-scaler
                loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
        torch.save(model.state_dict(), "half.pt")
    return model
