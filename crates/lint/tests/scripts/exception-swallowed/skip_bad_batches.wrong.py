import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Detector:
    def __init__(self, net, lr=2e-3):
        self.net = net.cuda()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.skipped = 0

    def step(self, images, boxes):
        self.optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(self.net(images.cuda()), boxes.cuda())
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train_one_epoch(self, loader):
        self.net.train()
        total = 0.0
        for images, boxes in loader:
            try:
                total += self.step(images, boxes)
            except RuntimeError:  # expect: exception-swallowed
                self.skipped += 1
        log.info("skipped %d", self.skipped)
        return total / len(loader)
