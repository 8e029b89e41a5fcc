import collections
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
metrics = collections.defaultdict(list)
features = []
for step in range(120):
    time.sleep(0.05)
    loss = nn.functional.cross_entropy(model(torch.randn(64, 256)), torch.randint(0, 10, (64,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    metrics["train"].append(loss.item())
    held_out = nn.functional.cross_entropy(model(torch.randn(512, 256)), torch.randint(0, 10, (512,)))
    metrics["valid"].append(held_out)
    with torch.no_grad():
        features.append(model[0](torch.randn(1024, 256)))
print("valid", float(sum(metrics["valid"]) / len(metrics["valid"])), "features", features[-1].shape)
