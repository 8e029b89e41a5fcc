import math

import torch
from torch import nn


def fit(model, train_batches, valid_batches, device, epochs=5):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=0)

    def loss_of(ids):
        ids = ids.to(device)
        logits = model(ids[:, :-1])
        return criterion(logits.flatten(0, 1), ids[:, 1:].flatten())

    def perplexity():  # or: eval-without-no-grad
        model.eval()
        values = []
        for ids in valid_batches:
            values.append(loss_of(ids).item())  # expect: eval-without-no-grad
        return math.exp(sum(values) / len(values))

    for epoch in range(epochs):
        model.train()
        for ids in train_batches:
            optimizer.zero_grad()
            loss_of(ids).backward()
            optimizer.step()
        current = perplexity()
        scheduler.step(current)
        print(epoch, current)
