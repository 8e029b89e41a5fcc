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
