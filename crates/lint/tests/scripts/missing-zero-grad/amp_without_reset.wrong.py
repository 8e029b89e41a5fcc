"""ResNet-34 in half precision."""
import torch
from torch import nn
from torchvision import models


def train(loader, epochs=90):
    model = models.resnet34(num_classes=200).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    scaler = torch.cuda.amp.GradScaler()
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            with torch.cuda.amp.autocast():
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)  # expect: missing-zero-grad
            scaler.update()
        scheduler.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "resnet.pt")
    return model
