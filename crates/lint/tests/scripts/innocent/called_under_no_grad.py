import torch
import torch.nn.functional as F


def batch_loss(model, batch, device):
    x, y = batch
    return F.cross_entropy(model(x.to(device)), y.to(device))


def mean_loss(model, loader, device):
    model.eval()
    total = 0.0
    for batch in loader:
        total += batch_loss(model, batch, device)
    return total / len(loader)


def main(model, train_loader, val_loader, device, epochs=10):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        model.train()
        for batch in train_loader:
            optimizer.zero_grad()
            batch_loss(model, batch, device).backward()
            optimizer.step()
        with torch.no_grad():
            value = mean_loss(model, val_loader, device)
        print(epoch, value.item())
