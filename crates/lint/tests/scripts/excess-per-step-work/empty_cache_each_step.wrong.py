import torch
from torch import nn


class Segmenter:
    def __init__(self, net, device="cuda"):
        self.net = net.to(device)
        self.device = device
        self.criterion = nn.CrossEntropyLoss(ignore_index=255)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def train_one_epoch(self, loader):
        self.net.train()
        total = 0.0
        for images, masks in loader:
            images, masks = images.to(self.device), masks.to(self.device)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.net(images), masks)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            torch.cuda.empty_cache()  # expect: excess-per-step-work
        return total / len(loader)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            mean = self.train_one_epoch(loader)
            print(f"{epoch:3d} {mean:.4f}")
