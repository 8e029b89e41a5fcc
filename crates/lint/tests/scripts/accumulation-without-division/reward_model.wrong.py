import torch
import torch.nn.functional as F

GRADIENT_ACCUMULATION = 16


def preference_loss(model, chosen, rejected):
    return -F.logsigmoid(model(chosen) - model(rejected)).mean()


def train(model, pairs, optimizer, epochs):
    step = 0
    for epoch in range(epochs):
        for chosen, rejected in pairs:
            loss = preference_loss(model, chosen, rejected)
            loss.backward()  # expect: accumulation-without-division
            step += 1
            if step % GRADIENT_ACCUMULATION == 0:
                optimizer.step()
                optimizer.zero_grad()
    if step % GRADIENT_ACCUMULATION:
        optimizer.step()
        optimizer.zero_grad()


def main(model, pairs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.0)
    optimizer.zero_grad()
    train(model, pairs, optimizer, epochs=1)
    torch.save(model.state_dict(), "reward.pt")
