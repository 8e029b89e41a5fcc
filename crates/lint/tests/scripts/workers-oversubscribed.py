# Cases of workers-oversubscribed; crates/lint/tests/support/cases.rs describes the format.

# ======== argparse_default.wrong.py ========
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData
from torchvision.transforms import ToTensor


def options():
    parser = argparse.ArgumentParser(description="baseline")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=24)  # or: workers-oversubscribed
    return parser.parse_args()


def main():
    args = options()
    data = FakeData(size=10_000, image_size=(3, 64, 64), transform=ToTensor())
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=args.workers)  # expect: workers-oversubscribed
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== argparse_default.right.py ========
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData
from torchvision.transforms import ToTensor


def options():
    parser = argparse.ArgumentParser(description="baseline")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=4)
    return parser.parse_args()


def main():
    args = options()
    data = FakeData(size=10_000, image_size=(3, 64, 64), transform=ToTensor())
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=args.workers)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()

# ======== config_dict.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

CONFIG = {
    "batch_size": 256,
    "num_workers": 40,  # or: workers-oversubscribed
    "lr": 0.1,
    "epochs": 30,
}


def get_loader(train):
    tf = [transforms.ToTensor()]
    if train:
        tf.insert(0, transforms.RandomHorizontalFlip())
    data = datasets.CIFAR100("data", train=train, download=True, transform=transforms.Compose(tf))
    return DataLoader(data, batch_size=CONFIG["batch_size"], num_workers=CONFIG["num_workers"])  # expect: workers-oversubscribed


def main():
    loader = get_loader(train=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 100)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"])
    criterion = nn.CrossEntropyLoss()
    for epoch in range(CONFIG["epochs"]):
        for image, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(image.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()

# ======== config_dict.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

CONFIG = {
    "batch_size": 256,
    "num_workers": 4,
    "lr": 0.1,
    "epochs": 30,
}


def get_loader(train):
    tf = [transforms.ToTensor()]
    if train:
        tf.insert(0, transforms.RandomHorizontalFlip())
    data = datasets.CIFAR100("data", train=train, download=True, transform=transforms.Compose(tf))
    return DataLoader(data, batch_size=CONFIG["batch_size"], num_workers=CONFIG["num_workers"])


def main():
    loader = get_loader(train=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 100)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"])
    criterion = nn.CrossEntropyLoss()
    for epoch in range(CONFIG["epochs"]):
        for image, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(image.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()

# ======== image_folder.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


def build_loaders(root, batch_size=64):
    train_tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    val_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    train = datasets.ImageFolder(root + "/train", train_tf)
    val = datasets.ImageFolder(root + "/val", val_tf)
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True, num_workers=32),  # expect: workers-oversubscribed
        DataLoader(val, batch_size=batch_size, num_workers=2),
    )


def main():
    train_loader, val_loader = build_loaders("imagenette")
    model = models.resnet18(num_classes=10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for images, labels in val_loader:
                hits += (model(images.cuda()).argmax(1).cpu() == labels).sum().item()
        print(epoch, hits / len(val_loader.dataset))


if __name__ == "__main__":
    main()

# ======== image_folder.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


def build_loaders(root, batch_size=64):
    train_tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    val_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    train = datasets.ImageFolder(root + "/train", train_tf)
    val = datasets.ImageFolder(root + "/val", val_tf)
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True, num_workers=6),
        DataLoader(val, batch_size=batch_size, num_workers=2),
    )


def main():
    train_loader, val_loader = build_loaders("imagenette")
    model = models.resnet18(num_classes=10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for images, labels in val_loader:
                hits += (model(images.cuda()).argmax(1).cpu() == labels).sum().item()
        print(epoch, hits / len(val_loader.dataset))


if __name__ == "__main__":
    main()

# ======== lightning_data.wrong.py ========
import lightning as L
from torch.utils.data import DataLoader, random_split
from torchvision import transforms
from torchvision.datasets import Food101


class FoodData(L.LightningDataModule):
    def __init__(self, root="data", batch_size=64, num_workers=16):
        super().__init__()
        self.root = root
        self.batch_size = batch_size
        self.num_workers = num_workers

    def setup(self, stage):
        transform = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
        full = Food101(self.root, split="train", transform=transform)
        self.train, self.val = random_split(full, [70_000, 5_750])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, num_workers=self.num_workers)  # expect: workers-oversubscribed

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size, num_workers=2)


def main(module):
    trainer = L.Trainer(max_epochs=10)
    trainer.fit(module, datamodule=FoodData())

# ======== lightning_data.right.py ========
import lightning as L
from torch.utils.data import DataLoader, random_split
from torchvision import transforms
from torchvision.datasets import Food101


class FoodData(L.LightningDataModule):
    def __init__(self, root="data", batch_size=64, num_workers=4):
        super().__init__()
        self.root = root
        self.batch_size = batch_size
        self.num_workers = num_workers

    def setup(self, stage):
        transform = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
        full = Food101(self.root, split="train", transform=transform)
        self.train, self.val = random_split(full, [70_000, 5_750])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, num_workers=self.num_workers)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size, num_workers=2)


def main(module):
    trainer = L.Trainer(max_epochs=10)
    trainer.fit(module, datamodule=FoodData())

# ======== per_process.wrong.py ========
"""One process for each of four cards, and six workers for each of them."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import CIFAR10
from torchvision.transforms import ToTensor

WORLD = 4


def worker(rank):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=WORLD)
    torch.cuda.set_device(rank)
    data = CIFAR10("data", train=True, transform=ToTensor())
    sampler = DistributedSampler(data, WORLD, rank)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=6)  # expect: workers-oversubscribed
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).cuda(rank), [rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image.cuda(rank)), label.cuda(rank))
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, nprocs=WORLD)

# ======== per_process.right.py ========
"""One process for each of four cards, and one worker for each of them."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import CIFAR10
from torchvision.transforms import ToTensor

WORLD = 4


def worker(rank):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=WORLD)
    torch.cuda.set_device(rank)
    data = CIFAR10("data", train=True, transform=ToTensor())
    sampler = DistributedSampler(data, WORLD, rank)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=1)
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).cuda(rank), [rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image.cuda(rank)), label.cuda(rank))
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, nprocs=WORLD)

# ======== variable_times_cards.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

CARDS = 4
WORKERS_PER_CARD = 8


def make_loader(root):
    transform = transforms.Compose([transforms.RandomCrop(96, pad_if_needed=True), transforms.ToTensor()])
    data = datasets.ImageFolder(root, transform)
    workers = CARDS * WORKERS_PER_CARD
    return DataLoader(data, batch_size=32 * CARDS, shuffle=True, num_workers=workers)  # expect: workers-oversubscribed


def main(root="plankton"):
    loader = make_loader(root)
    net = nn.Sequential(nn.Conv2d(3, 24, 7, stride=3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(24, 121))
    model = nn.DataParallel(net).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(40):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()

# ======== variable_times_cards.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

CARDS = 4
WORKERS_PER_CARD = 2


def make_loader(root):
    transform = transforms.Compose([transforms.RandomCrop(96, pad_if_needed=True), transforms.ToTensor()])
    data = datasets.ImageFolder(root, transform)
    workers = CARDS * WORKERS_PER_CARD
    return DataLoader(data, batch_size=32 * CARDS, shuffle=True, num_workers=workers)


def main(root="plankton"):
    loader = make_loader(root)
    net = nn.Sequential(nn.Conv2d(3, 24, 7, stride=3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(24, 121))
    model = nn.DataParallel(net).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(40):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image.cuda()), label.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
