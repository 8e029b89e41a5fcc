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
