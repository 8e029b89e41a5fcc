import torch
import torch.nn.functional as F


class InfoNCE(torch.nn.Module):
    def __init__(self, temperature=0.05):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
        similarity = a @ b.t() / self.temperature
        positive = similarity.diagonal()
        return (torch.logsumexp(similarity, dim=1) - positive).mean()


def train(encoder, loader, device, epochs=100):
    criterion = InfoNCE()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-4)
    encoder.to(device).train()
    for epoch in range(epochs):
        total = 0.0
        for first, second in loader:
            optimizer.zero_grad()
            loss = criterion(encoder(first.to(device)), encoder(second.to(device)))
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))
