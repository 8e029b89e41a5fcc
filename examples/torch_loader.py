"""PyTorch: a healthy training loop with two DataLoader workers.

Nothing is wrong here, so antifreeze prints no warning.

    antifreeze run --budget 2GB -- python torch_loader.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 2048

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3 * 64 * 64, generator=generator), index % 10


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(3 * 64 * 64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, 4):
        for images, labels in DataLoader(Images(), batch_size=64, num_workers=2):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
