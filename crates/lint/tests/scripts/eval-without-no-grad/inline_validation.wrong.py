import torch
from torch import nn, optim
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms


def main():
    full = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    train_set, val_set = random_split(full, [55_000, 5_000])
    train_loader = DataLoader(train_set, batch_size=200, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)).cuda()
    optimizer = optim.Adadelta(net.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        net.train()
        for image, digit in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(image.cuda()), digit.cuda())
            loss.backward()
            optimizer.step()

        net.eval()
        right = 0
        for image, digit in val_loader:
            guess = net(image.cuda()).argmax(dim=1).cpu()  # expect: eval-without-no-grad
            right += int((guess == digit).sum())
        print("epoch", epoch, "accuracy", right / len(val_set))
    torch.save(net.state_dict(), "digits.pt")


if __name__ == "__main__":
    main()
