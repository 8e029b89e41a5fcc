import torch
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast


def train_epoch(model, loader, optimizer, scaler, device, k=8):
    model.train()
    for step, (volume, mask) in enumerate(loader, start=1):
        volume, mask = volume.to(device), mask.to(device)
        optimizer.zero_grad(set_to_none=True)  # expect: accumulation-zeroes-every-step
        with autocast():
            loss = F.binary_cross_entropy_with_logits(model(volume), mask) / k
        scaler.scale(loss).backward()
        if step % k == 0 or step == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
            scaler.step(optimizer)
            scaler.update()


def main(model, loader, epochs=100):
    device = torch.device("cuda")
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.99, nesterov=True)
    scaler = GradScaler()
    for epoch in range(epochs):
        train_epoch(model, loader, optimizer, scaler, device)
        if epoch % 10 == 0:
            torch.save(model.state_dict(), f"volume-{epoch}.pt")
