import gc

import torch
import torch.nn.functional as F


class Engine:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device

    def step(self, batch):
        x, y = batch
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def safe_step(self, batch):
        try:
            return self.step(batch)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            gc.collect()
            torch.cuda.empty_cache()
            x, y = batch
            middle = len(y) // 2
            first = self.step((x[:middle], y[:middle]))  # expect: oom-retry-in-except
            second = self.step((x[middle:], y[middle:]))  # or: oom-retry-in-except
            return (first + second) / 2

    def train_one_epoch(self, loader):
        self.model.train()
        return sum(self.safe_step(batch) for batch in loader) / len(loader)
