import torch
import torch.nn as nn
from tqdm import tqdm


def validate(net, loader, criterion):
    device = torch.device("cuda:0")
    net.to(device)
    net.eval()
    masks, truths, loss_sum = [], [], 0.0
    with torch.no_grad():
        for image, mask in tqdm(loader):
            output = net(image.to(device))
            loss_sum += criterion(output, mask.to(device)).item()
            masks += [(torch.sigmoid(output) > 0.5).cpu()]
            truths += [mask]
    guess = torch.cat(masks)
    truth = torch.cat(truths) > 0.5
    overlap = (guess & truth).sum().item()
    return loss_sum / len(loader), 2 * overlap / max(1, (guess.sum() + truth.sum()).item())


def report(net, loader):
    loss, dice = validate(net, loader, nn.BCEWithLogitsLoss())
    print(f"loss {loss:.4f} dice {dice:.4f}")
