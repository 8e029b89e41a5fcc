import torch
import torch.nn.functional as F


class Clusterer(torch.nn.Module):
    def __init__(self, inputs, clusters):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(inputs, 256), torch.nn.ReLU(), torch.nn.Linear(256, clusters)
        )

    def forward(self, x):
        return F.softmax(self.net(x), dim=1)


def entropy(p):
    return -(p * torch.log(p)).sum(dim=-1)  # expect: log-unguarded


def objective(p):
    return entropy(p).mean() - 4.0 * entropy(p.mean(dim=0))


def train(loader, inputs, clusters, epochs=50):
    model = Clusterer(inputs, clusters)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for x, _ in loader:
            optimizer.zero_grad()
            loss = objective(model(x))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model
