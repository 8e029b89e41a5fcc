import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader


class Inference:
    def __init__(self, model: nn.Module, device: torch.device = torch.device("cuda")):
        self.model = model.to(device).eval()
        self.device = device

    @torch.inference_mode()
    def logits(self, loader: DataLoader):
        collected = {"logits": [], "ids": []}
        for ids, volume in loader:
            out = self.model(volume.to(self.device))
            collected["logits"].append(out.cpu())
            collected["ids"].extend(ids.tolist())
        return torch.cat(collected["logits"]).numpy(), collected["ids"]


def main(model, loader):
    runner = Inference(model)
    logits, ids = runner.logits(loader)
    order = np.argsort(ids)
    np.save("logits.npy", logits[order])
