import torch
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader


@torch.no_grad()
def predict(model, loader: DataLoader, device):
    model.eval()
    scores, truth = [], []
    for x, y in loader:
        logits = model(x.to(device))
        scores.append(torch.sigmoid(logits).cpu())
        truth.append(y)
    return torch.cat(scores), torch.cat(truth)


def evaluate(model, loader, device):
    scores, truth = predict(model, loader, device)
    auc = roc_auc_score(truth.numpy(), scores.numpy())
    top = scores.topk(10, dim=0).values
    print("auc", auc, "top", top.flatten().tolist())
    return auc
