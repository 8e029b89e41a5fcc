import torch
from torch import nn


def make_logger(path):
    rows = []

    def log(epoch, step, loss):
        rows.append((epoch, step, loss))

    def save():
        with open(path, "w") as out:
            for epoch, step, loss in rows:
                out.write(f"{epoch},{step},{float(loss):.6f}\n")

    return log, save


def train(model, loader, device, epochs=3):
    log, save = make_logger("train.csv")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for step, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            log(epoch, step, loss.item())
    save()
    return model
