"""Takes noise out of pictures; six small batches make one step."""
import torch
from torch import nn


def train(model, loader, epochs=5, every=6):
    scaler = torch.cuda.amp.GradScaler()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = nn.L1Loss()
    model.cuda().train()
    for epoch in range(epochs):
        optimizer.zero_grad(set_to_none=True)
        for number, (noisy, clean) in enumerate(loader):
            noisy, clean = noisy.cuda(), clean.cuda()
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                loss = criterion(model(noisy), clean)
            scaler.scale(loss / every).backward()
            boundary = (number + 1) % every == 0
            if boundary or number == len(loader) - 1:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
        print("epoch", epoch, "last", loss.item())
    torch.save(model.state_dict(), "denoiser.pt")
    return model
