import torch
from torch import nn, optim
from torch.utils.data import DataLoader as DL


def forward_pass(model, batch, device):
    x, y = (part.to(device) for part in batch)
    return nn.functional.cross_entropy(model(x), y)


def step(model, optimizer, batch, device):
    optimizer.zero_grad()
    loss = forward_pass(model, batch, device)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, dataset, device, epochs):
    loader = DL(dataset, batch_size=32, shuffle=True)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        epoch_loss = 0
        for batch in loader:
            epoch_loss += step(model, optimizer, batch, device)
        print("epoch", epoch, "mean loss", epoch_loss / len(loader))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 4)).to(device)
    x, y = torch.randn(5000, 50), torch.randint(0, 4, (5000,))
    train(model, torch.utils.data.TensorDataset(x, y), device, epochs=20)


if __name__ == "__main__":
    main()
