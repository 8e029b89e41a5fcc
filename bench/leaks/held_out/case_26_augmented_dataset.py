import time
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

N_IMAGES, N_AUG, SIDE = 500, 4, 256


def read_image(i):
    """stand-in for reading one jpeg from disk: uint8, C x H x W"""
    time.sleep(0.01)
    g = torch.Generator().manual_seed(i)
    return torch.randint(0, 256, (3, SIDE, SIDE), dtype=torch.uint8, generator=g)


def augment(img):
    img = img.float() / 255
    if torch.rand(()) < 0.5:
        img = img.flip(-1)
    return img * (0.8 + 0.4 * torch.rand(())) + 0.02 * torch.randn_like(img)


class PetImages(Dataset):
    def __init__(self, n_images):
        self.data = []
        self.targets = []
        for i in range(n_images):
            img = read_image(i)
            for _ in range(N_AUG):
                self.data.append(augment(img))
                self.targets.append(i % 3)
            if i % 50 == 0:
                print(f"preparing image {i}/{n_images}", flush=True)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i], self.targets[i]


torch.manual_seed(0)
train_set = PetImages(N_IMAGES)
loader = DataLoader(train_set, batch_size=20, shuffle=True)
net = nn.Sequential(nn.AvgPool2d(8), nn.Conv2d(3, 8, 3), nn.ReLU(),
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for ep in range(1):
    for n, (x, t) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if n % 20 == 0:
            print("epoch", ep, "batch", n, "of", len(loader), "loss", loss.item(), flush=True)
