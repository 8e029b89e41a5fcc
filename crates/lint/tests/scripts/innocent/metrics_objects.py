import torch
import torchmetrics
from torch import nn


def train_epoch(model, loader, optimizer, device, classes):
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=classes).to(device)
    mean_loss = torchmetrics.MeanMetric().to(device)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        accuracy.update(logits.detach(), y)
        mean_loss.update(loss.detach())
    return accuracy.compute().item(), mean_loss.compute().item()


def main(model, loader, device="cuda", classes=10):
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(20):
        print(epoch, train_epoch(model, loader, optimizer, device, classes))
