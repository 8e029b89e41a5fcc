"""Meant to act like batches of 32 on a small card."""
import torch
from torch import nn
from torch.utils.data import DataLoader


def fit(model: nn.Module, loader: DataLoader, device: torch.device, epochs: int = 4):
    accumulation_steps = 8
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-5)
    for epoch in range(epochs):
        for tokens, labels in loader:
            tokens, labels = tokens.to(device), labels.to(device)
            optimizer.zero_grad()  # expect: accumulation-zeroes-every-step
            outputs = model(tokens)
            loss = criterion(outputs, labels)
            loss = loss / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:  # expect: accumulation-undefined-index
                optimizer.step()
        optimizer.step()
        print("finished epoch", epoch)
    return model


def save(model: nn.Module, path: str):
    torch.save(model.state_dict(), path)
