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
