import functools
import random
import time
import torch
import torch.nn as nn

HEADS = 8


@functools.lru_cache(maxsize=None)
def alibi_bias(n):
    """(HEADS, n, n) linear distance penalties"""
    pos = torch.arange(n)
    dist = (pos[None, :] - pos[:, None]).abs().float()
    slopes = torch.tensor([2.0 ** -(h + 1) for h in range(HEADS)])
    return -slopes[:, None, None] * dist


class Attn(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(d, d) for _ in range(3))

    def forward(self, x):
        n, d = x.shape
        q, k, v = (f(x).view(n, HEADS, -1).transpose(0, 1) for f in (self.to_q, self.to_k, self.to_v))
        w = (q @ k.transpose(1, 2) + alibi_bias(n)).softmax(-1)
        return (w @ v).transpose(0, 1).reshape(n, d)


random.seed(5)
torch.manual_seed(5)
torch.set_num_threads(1)   # shared machine
net = nn.Sequential(nn.Linear(16, 32), Attn(), nn.Linear(32, 1))
optim = torch.optim.Adam(net.parameters(), lr=1e-3)

# one document per step, all of different length
doc_lengths = random.sample(range(500, 900), 110)
for step, n in enumerate(doc_lengths):
    time.sleep(0.05)      # read the document
    doc = torch.randn(n, 16)
    loss = (net(doc).squeeze(-1) - doc.sum(1)).pow(2).mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 10 == 0:
        print("step %d  len %d  loss %.4f" % (step, n, loss.item()), flush=True)
