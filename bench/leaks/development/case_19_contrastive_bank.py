from __future__ import annotations
from dataclasses import dataclass, field
import time
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TrainState:
    step: int = 0
    ema_loss: float = 0.0
    keys: list = field(default_factory=list)     # embeddings of former batches (negatives)


class Encoder(nn.Module):
    def __init__(self, dim=1024):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, dim))

    def forward(self, x):
        return F.normalize(self.body(x), dim=-1)


N_NEG = 4       # number of earlier batches used as negatives


def contrastive_step(enc, enc_k, opt, x, state: TrainState, tau=0.2):
    q = enc(x + 0.05 * torch.randn_like(x))
    with torch.no_grad():
        k = enc_k(x)
    negatives = state.keys[-N_NEG:]
    pos = (q * k).sum(-1, keepdim=True)
    logits = pos
    if negatives:
        neg = torch.cat([n[:256] for n in negatives])
        logits = torch.cat([pos, q @ neg.T], dim=1)
    loss = F.cross_entropy(logits / tau, torch.zeros(len(q), dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for a, b in zip(enc_k.parameters(), enc.parameters()):
            a.lerp_(b, 0.01)
    state.keys.append(k.detach().clone())
    state.step += 1
    state.ema_loss = 0.95 * state.ema_loss + 0.05 * loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)   # shared machine
    enc, enc_k = Encoder(), Encoder()
    enc_k.load_state_dict(enc.state_dict())
    opt = torch.optim.SGD(enc.parameters(), lr=0.05)
    state = TrainState()
    while state.step < 160:
        time.sleep(0.02)      # loader
        contrastive_step(enc, enc_k, opt, torch.randn(2048, 128), state)
        if state.step % 20 == 0:
            print(f"{state.step:>5} ema loss {state.ema_loss:.4f}", flush=True)


main()
