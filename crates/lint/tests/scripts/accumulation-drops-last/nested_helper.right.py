"""One graph at a time fits on the card, so the gradients of many are added up."""
import torch
from torch import nn


def fit(model, loader, device, epochs, accumulation=32, lr=1e-4):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()

    def apply():
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()

    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        for count, (graph, label) in enumerate(loader, 1):
            logits = model(graph.to(device))
            loss = criterion(logits, label.to(device)) / accumulation
            loss.backward()
            if count % accumulation == 0:
                apply()
        if count % accumulation != 0:
            apply()
        torch.save(model.state_dict(), f"graphs-{epoch}.pt")
    return model
