import torch
from torch.utils.data import DataLoader


def export(model, dataset, path):
    model = model.cuda().eval()
    loader = DataLoader(dataset, batch_size=256)
    out = []
    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
        for x in loader:
            out.append(model(x.cuda()).float().cpu())
    torch.save(torch.cat(out), path)


def main(model, dataset):
    export(model, dataset, "embeddings.pt")
    print("written", len(dataset), "rows")
