import torch
from torch import nn

BATCH = 131_072
INPUTS = 1024
HIDDEN = 8192


def batches(count):
    for _ in range(count):
        yield torch.randn(BATCH, INPUTS), torch.randint(0, 100, (BATCH,))  # or: batch-too-large-here


def main():
    model = nn.Sequential(
        nn.Linear(INPUTS, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, 100),
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = nn.CrossEntropyLoss()
    for step, (x, y) in enumerate(batches(1000)):
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        loss = criterion(model(x), y)  # expect: batch-too-large-here
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
