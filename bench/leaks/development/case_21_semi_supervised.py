from collections import defaultdict
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        self.embed = nn.Linear(512, 1024)
        self.head = nn.Linear(1024, 10)

    def features(self, x):
        return torch.relu(self.embed(self.stem(x)))

    def forward(self, x):
        return self.head(self.features(x))


def main(n_iter=68):
    torch.manual_seed(0)
    torch.set_num_threads(1)   # shared machine
    model, metrics, tsne_points = Net(), defaultdict(list), []
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    for it in range(n_iter):
        time.sleep(0.06)  # I/O
        x = torch.randn(512, 256)
        y = (x[:, :10]).argmax(1)
        sup = F.cross_entropy(model(x), y)
        opt.zero_grad()
        sup.backward()
        opt.step()

        # how consistent are the outputs under noise? (only watched, not trained on)
        xu = torch.randn(640, 256)
        p = F.softmax(model(xu), dim=1)
        q = F.log_softmax(model(xu + 0.1 * torch.randn_like(xu)), dim=1)
        metrics["supervised"].append(sup.item())
        metrics["consistency"].append(F.kl_div(q, p, reduction="batchmean"))

        with torch.no_grad():
            f = model.features(torch.randn(2048, 256))
        tsne_points.append(f.numpy())

        if it % 10 == 0:
            print("iter", it, {k: round(float(v[-1]), 4) for k, v in metrics.items()}, flush=True)

    last = np.asarray(tsne_points[-1])
    print("mean consistency", float(sum(metrics["consistency"]) / n_iter), "tsne input", last[:500].shape)


if __name__ == "__main__":
    main()
