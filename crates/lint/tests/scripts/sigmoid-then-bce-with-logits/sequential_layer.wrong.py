import torch
import torch.nn as nn


class UNetLite(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.Conv2d(16, 1, 3, padding=1),
            nn.Sigmoid(),  # expect: sigmoid-then-bce-with-logits
        )

    def forward(self, x):
        return self.up(self.down(x))


def train(loader, device, epochs=40):
    net = UNetLite().to(device)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(5.0, device=device))  # or: sigmoid-then-bce-with-logits
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for scan, mask in loader:
            scan, mask = scan.to(device), mask.to(device)
            optimizer.zero_grad()
            loss = criterion(net(scan), mask)  # or: sigmoid-then-bce-with-logits
            loss.backward()
            optimizer.step()
        torch.save(net.state_dict(), "unet.pt")
