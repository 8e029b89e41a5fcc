import torch
from torch import nn


def fit(model, loader, epochs, device="cuda"):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.PoissonNLLLoss()
    model.to(device).train()
    for epoch in range(epochs):
        total = 0.0
        for counts, covariates in loader:
            counts, covariates = counts.to(device), covariates.to(device)
            optimizer.zero_grad()
            loss = criterion(model(covariates), counts)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"{epoch}: {total / len(loader):.4f}")
    return model


def main(loader):
    model = nn.Sequential(nn.Linear(30, 60), nn.Softplus(), nn.Linear(60, 1))
    fit(model, loader, epochs=50)
    torch.save(model.state_dict(), "counts.pt")
