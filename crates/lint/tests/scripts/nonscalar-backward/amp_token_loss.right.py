import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast


class TokenLoss:
    def __init__(self, pad):
        self.criterion = nn.CrossEntropyLoss(ignore_index=pad, reduction="none")

    def __call__(self, logits, target):
        return self.criterion(logits.transpose(1, 2), target).sum(dim=1).mean()


def train(model, loader, pad, epochs=3):
    scaler = GradScaler()
    loss_fn = TokenLoss(pad)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model.cuda()
    for epoch in range(epochs):
        for source, target in loader:
            source, target = source.cuda(), target.cuda()
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = loss_fn(model(source, target[:, :-1]), target[:, 1:])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch.save(model.state_dict(), "translate.pt")
