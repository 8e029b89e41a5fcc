import torch
import torch.nn.functional as F


class Runner:
    def __init__(self, net, optimizer, loaders, device):
        self.net = net.to(device)
        self.optimizer = optimizer
        self.loaders = loaders
        self.device = device

    def _forward(self, batch):
        x, y = batch["image"].to(self.device), batch["label"].to(self.device)
        return self.net(x), y

    def train_epoch(self):
        self.net.train()
        for batch in self.loaders["train"]:
            self.optimizer.zero_grad()
            logits, y = self._forward(batch)
            F.cross_entropy(logits, y).backward()
            self.optimizer.step()

    def evaluate(self):  # or: eval-without-no-grad
        self.net.eval()
        loss_sum, count = 0.0, 0
        for batch in self.loaders["val"]:
            logits, y = self._forward(batch)  # expect: eval-without-no-grad
            loss_sum += F.cross_entropy(logits, y, reduction="sum").item()
            count += y.size(0)
        return loss_sum / count

    def run(self, epochs):
        best = float("inf")
        for _ in range(epochs):
            self.train_epoch()
            value = self.evaluate()
            if value < best:
                best = value
                torch.save(self.net.state_dict(), "best.pth")
        return best
