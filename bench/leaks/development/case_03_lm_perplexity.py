import math
import time
import torch
from torch import nn

VOCAB, D, T = 4000, 64, 64


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, D)
        layer = nn.TransformerEncoderLayer(D, 4, 128, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(D, VOCAB)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        return self.head(self.enc(self.emb(ids), mask=mask, is_causal=True))


class Trainer:
    def __init__(self, model, lr=3e-4):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.ce = nn.CrossEntropyLoss()

    def _loss(self, ids):
        logits = self.model(ids[:, :-1])
        return self.ce(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))

    def fit(self, batches):
        self.model.train()
        for ids in batches:
            loss = self._loss(ids)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        print("train loss", loss.item(), flush=True)

    def perplexity(self, batches):
        self.model.eval()
        total_loss, n_tokens = 0, 0
        for k, ids in enumerate(batches):
            n = ids[:, 1:].numel()
            loss = self._loss(ids)
            total_loss += loss * n
            n_tokens += n
            if k % 20 == 0:
                print(f"  eval batch {k}: {float(loss):.3f}", flush=True)
        return math.exp(total_loss / n_tokens)


def fake_corpus(n, batch=12):
    for _ in range(n):
        time.sleep(0.09)      # tokenizing
        yield torch.randint(0, VOCAB, (batch, T + 1))


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)   # shared machine
    t = Trainer(LM())
    t.fit(fake_corpus(5))
    print("ppl", t.perplexity(fake_corpus(70)))
