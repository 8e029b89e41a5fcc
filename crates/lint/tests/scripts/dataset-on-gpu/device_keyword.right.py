import torch
import torch.nn as nn
import torch.optim as optim


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)


def main(chunk=50_000):
    everything = torch.randn(6_000_000, 10)
    field = Field().cuda()
    optimizer = optim.Adam(field.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    for epoch in range(20):
        for part in everything.split(chunk):
            part = part.cuda(non_blocking=True)
            optimizer.zero_grad()
            loss = criterion(field(part), part.norm(dim=1, keepdim=True))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
