import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    x = torch.randn(1500, 8)
    y = torch.randint(0, 3, (1500,))
    weight = torch.rand(1500)
    loader = DataLoader(TensorDataset(x, y, weight), batch_size=75, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 20), nn.Tanh(), nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss(reduction="none")
    for epoch in range(15):
        for inputs, target, importance in loader:
            optimizer.zero_grad()
            per_sample = criterion(model(inputs), target)
            loss = per_sample * importance
            loss.backward()  # expect: nonscalar-backward
            optimizer.step()
        print("done", epoch)


if __name__ == "__main__":
    main()
