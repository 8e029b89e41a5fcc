"""Fine-tuning of a small transformer on one card, with a warm-up and clipping."""
import argparse
import math
import random

import torch
import torch.nn.functional as F
from torch import nn


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--max-norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


class Tiny(nn.Module):
    def __init__(self, vocab=2000, width=64, length=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.place = nn.Parameter(torch.randn(1, length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1)).to(ids.device)
        x = self.embed(ids) + self.place[:, : ids.size(1)]
        return self.head(self.blocks(x, mask=mask))


def documents(count, seed, length=128, vocab=2000):
    rng = random.Random(seed)
    for _ in range(count):
        start = rng.randrange(vocab)
        yield torch.tensor([(start + 7 * place) % vocab for place in range(length)])


def make_batches(count, size, seed):
    rows = list(documents(count, seed))
    return [torch.stack(rows[at : at + size]) for at in range(0, len(rows), size)]


def rate(step, warmup=100, total=2000):
    if step < warmup:
        return step / warmup
    return max(0.0, 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup))))


def finetune(model, batches, args, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad(set_to_none=True)
        for step, ids in enumerate(batches):
            ids = ids.to(device)
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            loss = loss / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:  # expect: accumulation-drops-last
                nn.utils.clip_grad_norm_(model.parameters(), args.max_norm)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad(set_to_none=True)
        print(epoch, loss.item() * args.gradient_accumulation_steps)


if __name__ == "__main__":
    settings = options()
    torch.manual_seed(settings.seed)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    finetune(Tiny().to(where), make_batches(500, settings.batch_size, settings.seed), settings, where)
