import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader
from torchvision.datasets import FashionMNIST
from torchvision.transforms import ToTensor

device = "cuda" if torch.cuda.is_available() else "cpu"
train_set = FashionMNIST("data", train=True, download=True, transform=ToTensor())
train_loader = DataLoader(train_set, batch_size=100, shuffle=True, num_workers=4)  # expect: no-main-guard

net = nn.Sequential(
    nn.Flatten(),
    nn.Linear(28 * 28, 300),
    nn.ReLU(),
    nn.Linear(300, 10),
).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(8):
    running = 0.0
    for images, labels in train_loader:  # or: no-main-guard
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch}: {running / len(train_loader):.3f}")

torch.save(net.state_dict(), "fashion.pt")
