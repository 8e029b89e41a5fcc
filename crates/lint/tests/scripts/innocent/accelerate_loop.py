import torch
from accelerate import Accelerator
from torch import nn


def main(model, loader, epochs=3):
    accelerator = Accelerator(gradient_accumulation_steps=4, mixed_precision="fp16")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for step, (ids, labels) in enumerate(loader):
            with accelerator.accumulate(model):
                loss = criterion(model(ids), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if step % 50 == 0:
                accelerator.print(epoch, step, loss.item())
