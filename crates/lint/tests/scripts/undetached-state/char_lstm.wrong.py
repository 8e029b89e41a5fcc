import torch
import torch.nn as nn


class CharModel(nn.Module):
    def __init__(self, vocab=96, width=256):
        super(CharModel, self).__init__()
        self.embed = nn.Embedding(vocab, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.out = nn.Linear(width, vocab)

    def forward(self, ids, state):
        seq, state = self.lstm(self.embed(ids), state)
        return self.out(seq), state

    def start(self, batch, device):
        shape = (2, batch, 256)
        return torch.zeros(shape, device=device), torch.zeros(shape, device=device)


def windows(stream, length):
    for begin in range(0, stream.size(1) - 1, length):
        end = min(begin + length, stream.size(1) - 1)
        yield stream[:, begin:end], stream[:, begin + 1:end + 1]


def train(model, stream, optimizer, device, length=64):
    criterion = nn.CrossEntropyLoss()
    model.train()
    state = model.start(stream.size(0), device)
    for ids, target in windows(stream, length):
        ids, target = ids.to(device), target.to(device)
        optimizer.zero_grad()
        logits, state = model(ids, state)  # expect: undetached-state
        loss = criterion(logits.reshape(-1, logits.size(-1)), target.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model
