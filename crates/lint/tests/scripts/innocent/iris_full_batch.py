import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    flowers = load_iris()
    x = torch.tensor(flowers.data, dtype=torch.float32)
    y = torch.tensor(flowers.target)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    loader = DataLoader(TensorDataset(x, y), batch_size=150)
    for epoch in range(200):
        for inputs, kinds in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), kinds)
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        print((model(x).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
