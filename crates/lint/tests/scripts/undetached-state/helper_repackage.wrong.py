import argparse

import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, vocab, width, layers):
        super().__init__()
        self.encoder = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, layers)
        self.decoder = nn.Linear(width, vocab)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(output), hidden


def init_hidden(layers, batch, width):
    return (torch.zeros(layers, batch, width), torch.zeros(layers, batch, width))


def train(model, data, optimizer, args):
    criterion = nn.CrossEntropyLoss()
    hidden = init_hidden(args.layers, data.size(1), args.width)
    for start in range(0, data.size(0) - 1, args.bptt):
        length = min(args.bptt, data.size(0) - 1 - start)
        tokens = data[start:start + length]
        targets = data[start + 1:start + 1 + length].reshape(-1)
        model.zero_grad()
        output, hidden = model(tokens, hidden)  # expect: undetached-state
        loss = criterion(output.view(targets.numel(), -1), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bptt", type=int, default=35)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=200)
    options = parser.parse_args()
    corpus = torch.load("corpus.pt")
    lm = LanguageModel(10_000, options.width, options.layers)
    train(lm, corpus, torch.optim.SGD(lm.parameters(), lr=20.0), options)
