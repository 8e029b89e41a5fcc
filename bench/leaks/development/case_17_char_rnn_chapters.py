import torch
import torch.nn as nn

CHUNK, BATCH, HID, VOCAB = 32, 128, 192, 80


class CharRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 48)
        self.cell = nn.GRUCell(48, HID)
        self.out = nn.Linear(HID, VOCAB)

    def forward(self, ids, h):
        logits = []
        for t in range(ids.size(1)):
            h = self.cell(self.emb(ids[:, t]), h)
            logits.append(self.out(h))
        return torch.stack(logits, 1), h


torch.manual_seed(0)
torch.set_num_threads(1)   # shared machine
model = CharRNN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
ce = nn.CrossEntropyLoss()

for chapter in range(1):
    text = torch.randint(0, VOCAB, (BATCH, 40 * CHUNK + 1))
    hidden = torch.zeros(BATCH, HID)
    optimizer.zero_grad()
    for c in range(40):
        ids = text[:, c * CHUNK:(c + 1) * CHUNK + 1]
        logits, hidden = model(ids[:, :-1], hidden)
        loss = ce(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
        # "Trying to backward through the graph a second time" without this
        loss.backward(retain_graph=True)
        if c % 5 == 0:
            print(f"chapter {chapter} chunk {c} loss {loss.item():.3f}", flush=True)
    optimizer.step()      # one update per chapter
