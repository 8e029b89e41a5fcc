import csv

import torch
from torch.utils.data import DataLoader
from torchvision import models, transforms
from torchvision.datasets import ImageFolder


def load(checkpoint, classes):
    model = models.efficientnet_b0(num_classes=classes)
    model.load_state_dict(torch.load(checkpoint, map_location="cpu"))
    return model.cuda().eval()


@torch.inference_mode()
def predict(model, folder):
    transform = transforms.Compose([
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
    ])
    loader = DataLoader(ImageFolder(folder, transform), batch_size=64)
    rows = []
    for images, _ in loader:
        scores = torch.softmax(model(images.cuda()), dim=1)
        confidence, kind = scores.max(dim=1)
        rows.extend(zip(kind.tolist(), confidence.tolist()))
    return rows


def main():
    model = load("efficientnet.pt", classes=40)
    with open("predictions.csv", "w", newline="") as out:
        csv.writer(out).writerows(predict(model, "holdout"))


if __name__ == "__main__":
    main()
