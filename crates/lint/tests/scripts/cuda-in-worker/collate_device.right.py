import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

device = torch.device("cuda")


def collate(items):
    tokens = pad_sequence([torch.tensor(tokens) for tokens, _ in items], batch_first=True)
    labels = torch.tensor([label for _, label in items])
    return tokens, labels


class Mean(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, 100, padding_idx=0)
        self.out = nn.Linear(100, classes)

    def forward(self, tokens):
        return self.out(self.embed(tokens).mean(dim=1))


def main(dataset):
    loader = DataLoader(dataset, batch_size=64, shuffle=True, collate_fn=collate, num_workers=4)
    model = Mean(30_000, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(5):
        for tokens, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
