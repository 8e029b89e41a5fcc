import torch
from torch import nn, optim
from torchvision import datasets, transforms


def make_model(hidden=200):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
        nn.Softmax(dim=1),  # expect: double-softmax
    )


def main(epochs=5):
    data = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
    model = make_model()
    loss_function = nn.CrossEntropyLoss()  # or: double-softmax
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for image, digit in loader:
            optimizer.zero_grad()
            loss = loss_function(model(image), digit)  # or: double-softmax
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()
