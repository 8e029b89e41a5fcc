import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model, dataset, epochs, lr=3e-5, accumulate=4):
    device = torch.device("cuda")
    model = model.to(device)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    batches = len(loader)
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        for i, (ids, labels) in enumerate(loader):
            ids, labels = ids.to(device), labels.to(device)
            logits = model(ids)
            loss = criterion(logits.view(-1, logits.size(-1)), labels.view(-1))
            loss = loss / accumulate
            loss.backward()
            if (i + 1) % accumulate == 0 or i + 1 == batches:
                optimizer.step()
                optimizer.zero_grad()
        torch.save(model.state_dict(), f"epoch{epoch}.pt")
    return model
