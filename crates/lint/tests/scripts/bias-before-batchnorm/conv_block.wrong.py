import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)  # expect: bias-before-batchnorm
        self.norm = nn.BatchNorm2d(outputs)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.stem = Block(3, 32)
        self.stages = nn.Sequential(Block(32, 64, 2), Block(64, 128, 2), Block(128, 256, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        x = self.stages(self.stem(x))
        return self.head(self.pool(x).flatten(1))


def step(net, optimizer, images, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)
    optimizer.step()
    return loss.item()
