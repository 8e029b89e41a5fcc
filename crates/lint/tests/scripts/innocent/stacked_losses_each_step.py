import torch
import torch.nn.functional as F
from torch import optim


def train(decoder, loader, epochs, lr=1e-3):
    optimizer = optim.Adam(decoder.parameters(), lr=lr)
    for epoch in range(epochs):
        for state, sequence in loader:
            losses = []
            for t in range(sequence.size(1) - 1):
                logits, state = decoder(sequence[:, t], state)
                losses.append(F.cross_entropy(logits, sequence[:, t + 1]))
            loss = torch.stack(losses).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


def sample(decoder, token, state, length=50):
    out = [token]
    with torch.no_grad():
        for _ in range(length):
            logits, state = decoder(token, state)
            token = logits.argmax(-1)
            out.append(token.cpu())
    return out
