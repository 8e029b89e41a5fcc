import torch
from torch import nn

config = dict(batch_size=96, seq_len=256, d_model=64, n_heads=4, n_layers=5, lr=2e-4,
              n_docs=192, n_epochs=2)


class SelfAttention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.d = h, d
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = [z.view(b, t, self.h, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, -1)]
        w = torch.softmax(q @ k.transpose(-1, -2) / (self.d // self.h) ** 0.5, dim=-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, self.d))


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.att, self.ff = SelfAttention(d, h), nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x):
        x = x + self.att(self.ln1(x))
        return x + self.ff(self.ln2(x))


class Classifier(nn.Module):
    def __init__(self, vocab=2000):
        super().__init__()
        d = config["d_model"]
        self.tok = nn.Embedding(vocab, d)
        self.body = nn.Sequential(*[Layer(d, config["n_heads"]) for _ in range(config["n_layers"])])
        self.cls = nn.Linear(d, 2)

    def forward(self, ids):
        return self.cls(self.body(self.tok(ids)).mean(1))


def train():
    torch.manual_seed(0)
    torch.set_num_threads(1)   # shared machine
    docs = torch.randint(0, 2000, (config["n_docs"], config["seq_len"]))
    labels = (docs[:, 0] > 1000).long()
    model = Classifier()
    opt = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    bs = config["batch_size"]
    for epoch in range(config["n_epochs"]):
        for i in range(0, len(docs), bs):
            logits = model(docs[i:i + bs])
            loss = nn.functional.cross_entropy(logits, labels[i:i + bs])
            opt.zero_grad()
            loss.backward()
            opt.step()
            print("epoch", epoch, "docs", i + bs, "loss", round(loss.item(), 4), flush=True)


train()
