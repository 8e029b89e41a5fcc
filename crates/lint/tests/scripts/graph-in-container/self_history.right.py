import dataclasses
from typing import Dict, List

import torch
from torch import nn


@dataclasses.dataclass
class Settings:
    epochs: int = 50
    lr: float = 1e-3
    clip: float = 1.0


class Fitter:
    def __init__(self, model: nn.Module, settings: Settings):
        self.model = model
        self.settings = settings
        self.history: Dict[str, List[float]] = {"train": [], "grad": []}
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
        self.loss_fn = nn.HuberLoss()

    def _step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.history["train"].append(loss.item())
        self.history["grad"].append(norm.item())

    def fit(self, loader):
        for epoch in range(self.settings.epochs):
            self.model.train()
            for x, y in loader:
                self._step(x, y)
        return self.history
