"""Turns a shelf of books into vectors; the longest books do not fit on the card at once."""
import json

import torch


def read(path):
    with open(path) as lines:
        for line in lines:
            yield json.loads(line)["tokens"]


@torch.no_grad()
def embed_all(encoder, texts):
    vectors = []
    for text in texts:
        ids = torch.tensor([text], device="cuda")
        vector = None
        try:
            vector = encoder(ids).mean(dim=1).squeeze(0)
        except torch.OutOfMemoryError:
            print("too long for the card:", len(text))
        if vector is None:
            parts = ids.chunk(4, dim=1)
            vector = sum(encoder(part).mean(dim=1).squeeze(0) for part in parts) / 4
        vectors.append(vector.cpu())
    return torch.stack(vectors)


def main(encoder, path="books.jsonl"):
    encoder = encoder.cuda().eval()
    table = embed_all(encoder, read(path))
    torch.save(table, "texts.pt")
