import torch
import torch.nn.functional as F


def train_epoch(model, loader, optimizer, scaler, scheduler, k):
    model.train()
    seen = 0.0
    optimizer.zero_grad(set_to_none=True)
    for it, (patch, label) in enumerate(loader):
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(patch.cuda()), label.cuda())
        scaler.scale(loss / k).backward()
        seen += loss.item()
        if (it + 1) % k == 0:  # expect: accumulation-drops-last
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
    return seen / len(loader)


def run(model, loader, epochs=30, k=4):
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader) // k)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(epochs):
        print(epoch, train_epoch(model, loader, optimizer, scaler, scheduler, k))
