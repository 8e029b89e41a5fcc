import torch
from torch import nn


class SpeechTrainer:
    def __init__(self, model, loader, accumulate=4):
        self.model = model
        self.loader = loader
        self.accumulate = accumulate
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

    def train_one_epoch(self, device):
        self.model.train()
        self.optimizer.zero_grad()
        for batch_idx, (mel, text, mel_len, text_len) in enumerate(self.loader):
            log_probs = self.model(mel.to(device)).log_softmax(dim=-1).transpose(0, 1)
            loss = self.ctc(log_probs, text.to(device), mel_len, text_len)
            (loss / self.accumulate).backward()
            if (batch_id + 1) % self.accumulate == 0:  # expect: accumulation-undefined-index
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def fit(self, device, epochs=100):
        for epoch in range(epochs):
            self.train_one_epoch(device)
            torch.save(self.model.state_dict(), "speech.pt")
