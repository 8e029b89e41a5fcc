# Cases of undetached-state; crates/lint/tests/support/cases.rs describes the format.

# ======== char_lstm.wrong.py ========
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

# ======== char_lstm.right.py ========
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
        state = tuple(part.detach() for part in state)
        logits, state = model(ids, state)
        loss = criterion(logits.reshape(-1, logits.size(-1)), target.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model

# ======== helper_repackage.wrong.py ========
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

# ======== helper_repackage.right.py ========
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


def repackage(hidden):
    if isinstance(hidden, torch.Tensor):
        return hidden.detach()
    return tuple(repackage(part) for part in hidden)


def train(model, data, optimizer, args):
    criterion = nn.CrossEntropyLoss()
    hidden = init_hidden(args.layers, data.size(1), args.width)
    for start in range(0, data.size(0) - 1, args.bptt):
        length = min(args.bptt, data.size(0) - 1 - start)
        tokens = data[start:start + length]
        targets = data[start + 1:start + 1 + length].reshape(-1)
        model.zero_grad()
        hidden = repackage(hidden)
        output, hidden = model(tokens, hidden)
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

# ======== memory_network.wrong.py ========
import torch
import torch.nn as nn
import torch.nn.functional as F
from tqdm import tqdm


class MemoryReader(nn.Module):
    def __init__(self, width=128, slots=16, vocab=5000):
        super().__init__()
        self.slots = slots
        self.width = width
        self.embed = nn.Embedding(vocab, width)
        self.write = nn.Linear(2 * width, width)
        self.read = nn.Linear(width, vocab)

    def blank(self, batch):
        return torch.zeros(batch, self.slots, self.width)

    def forward(self, ids, memory):
        summary = self.embed(ids).mean(dim=1, keepdim=True).expand(-1, self.slots, -1)
        memory = torch.tanh(self.write(torch.cat([memory, summary], dim=-1)))
        return self.read(memory.mean(dim=1)), memory


def train(chunks, batch=16, epochs=2):
    net = MemoryReader()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    for epoch in range(epochs):
        memory = net.blank(batch)
        for ids, following in tqdm(chunks):
            optimizer.zero_grad()
            logits, memory = net(ids, memory)  # expect: undetached-state
            loss = F.cross_entropy(logits, following)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return net

# ======== memory_network.right.py ========
import torch
import torch.nn as nn
import torch.nn.functional as F
from tqdm import tqdm


class MemoryReader(nn.Module):
    def __init__(self, width=128, slots=16, vocab=5000):
        super().__init__()
        self.slots = slots
        self.width = width
        self.embed = nn.Embedding(vocab, width)
        self.write = nn.Linear(2 * width, width)
        self.read = nn.Linear(width, vocab)

    def blank(self, batch):
        return torch.zeros(batch, self.slots, self.width)

    def forward(self, ids, memory):
        summary = self.embed(ids).mean(dim=1, keepdim=True).expand(-1, self.slots, -1)
        memory = torch.tanh(self.write(torch.cat([memory, summary], dim=-1)))
        return self.read(memory.mean(dim=1)), memory


def train(chunks, batch=16, epochs=2):
    net = MemoryReader()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    for epoch in range(epochs):
        memory = net.blank(batch)
        for ids, following in tqdm(chunks):
            optimizer.zero_grad()
            logits, memory = net(ids, memory)
            loss = F.cross_entropy(logits, following)
            loss.backward()
            optimizer.step()
            memory = memory.detach()
        print(epoch, loss.item())
    return net

# ======== moving_average.wrong.py ========
"""Keeps a moving average of the features and compares each batch with it."""
import torch
import torch.nn.functional as F
from torch import nn


class Centered(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.layer = nn.Linear(inputs, width)

    def forward(self, x, center):
        z = F.normalize(self.layer(x), dim=1)
        center = 0.9 * center + 0.1 * z.mean(dim=0)
        return z, center


def train(loader, inputs=64, width=16, epochs=5):
    model = Centered(inputs, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    center = torch.zeros(width)
    for epoch in range(epochs):
        for i, (x, _) in enumerate(loader):
            optimizer.zero_grad()
            z, center = model(x, center)  # expect: undetached-state
            loss = 1 - F.cosine_similarity(z, center.expand_as(z)).mean()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model

# ======== moving_average.right.py ========
"""Keeps a moving average of the features and compares each batch with it."""
import torch
import torch.nn.functional as F
from torch import nn


class Centered(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.layer = nn.Linear(inputs, width)

    def forward(self, x, center):
        z = F.normalize(self.layer(x), dim=1)
        center = 0.9 * center + 0.1 * z.mean(dim=0)
        return z, center


def train(loader, inputs=64, width=16, epochs=5):
    model = Centered(inputs, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    center = torch.zeros(width)
    for epoch in range(epochs):
        for i, (x, _) in enumerate(loader):
            optimizer.zero_grad()
            z, center = model(x, center.detach())
            loss = 1 - F.cosine_similarity(z, center.expand_as(z)).mean()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model

# ======== rnn_cell_stream.wrong.py ========
"""Predicts the next reading of a sensor; the cell runs over the stream without end."""
import numpy as np
import torch
from torch import nn

cell = nn.GRUCell(8, 32)
readout = nn.Linear(32, 8)
params = list(cell.parameters()) + list(readout.parameters())
optimizer = torch.optim.SGD(params, lr=1e-2)


def readings(path):
    table = np.load(path, mmap_mode="r")
    for row in table:
        yield torch.from_numpy(np.array(row, dtype=np.float32)).unsqueeze(0)


def learn(path):
    h = torch.zeros(1, 32)
    previous = torch.zeros(1, 8)
    for count, current in enumerate(readings(path)):
        optimizer.zero_grad()
        h = cell(previous, h)  # expect: undetached-state
        loss = nn.functional.mse_loss(readout(h), current)
        loss.backward()
        optimizer.step()
        previous = current
        if count % 1000 == 0:
            print(count, loss.item())


if __name__ == "__main__":
    learn("sensor.npy")

# ======== rnn_cell_stream.right.py ========
"""Predicts the next reading of a sensor; the cell runs over the stream without end."""
import numpy as np
import torch
from torch import nn

cell = nn.GRUCell(8, 32)
readout = nn.Linear(32, 8)
params = list(cell.parameters()) + list(readout.parameters())
optimizer = torch.optim.SGD(params, lr=1e-2)


def readings(path):
    table = np.load(path, mmap_mode="r")
    for row in table:
        yield torch.from_numpy(np.array(row, dtype=np.float32)).unsqueeze(0)


def learn(path):
    h = torch.zeros(1, 32)
    previous = torch.zeros(1, 8)
    for count, current in enumerate(readings(path)):
        optimizer.zero_grad()
        h = cell(previous, h.detach())
        loss = nn.functional.mse_loss(readout(h), current)
        loss.backward()
        optimizer.step()
        previous = current
        if count % 1000 == 0:
            print(count, loss.item())


if __name__ == "__main__":
    learn("sensor.npy")

# ======== state_in_attribute.wrong.py ========
import torch
from torch import nn


class GRUForecaster(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, h=None):
        seq, h = self.gru(x, h)
        return self.out(seq[:, -1]), h


class StatefulTrainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.hidden = None
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def train_one_epoch(self, loader, device):
        self.hidden = None
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            self.optimizer.zero_grad()
            prediction, self.hidden = self.model(x, self.hidden)  # expect: undetached-state
            loss = self.criterion(prediction, y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    def fit(self, loader, device, epochs=10):
        for epoch in range(epochs):
            print(epoch, self.train_one_epoch(loader, device))

# ======== state_in_attribute.right.py ========
import torch
from torch import nn


class GRUForecaster(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, h=None):
        seq, h = self.gru(x, h)
        return self.out(seq[:, -1]), h


class StatefulTrainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.hidden = None
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def train_one_epoch(self, loader, device):
        self.hidden = None
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            self.optimizer.zero_grad()
            prediction, hidden = self.model(x, self.hidden)
            self.hidden = hidden.detach()
            loss = self.criterion(prediction, y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    def fit(self, loader, device, epochs=10):
        for epoch in range(epochs):
            print(epoch, self.train_one_epoch(loader, device))
