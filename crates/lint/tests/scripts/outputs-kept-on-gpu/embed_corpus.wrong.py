import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import models
from torchvision.datasets import ImageFolder
from torchvision.transforms import Compose, Resize, ToTensor


def build():
    backbone = models.resnet50(weights=None)
    backbone.fc = torch.nn.Identity()
    return backbone.cuda().eval()


def embed(folder):
    transform = Compose([Resize((224, 224)), ToTensor()])
    loader = DataLoader(ImageFolder(folder, transform), batch_size=128)
    backbone = build()
    features, targets = [], []
    with torch.no_grad():
        for images, labels in loader:
            vectors = F.normalize(backbone(images.cuda(non_blocking=True)), dim=1)
            features.append(vectors)  # expect: outputs-kept-on-gpu
            targets.append(labels)
    return torch.cat(features), torch.cat(targets)


if __name__ == "__main__":
    table, labels = embed("photos/train")
    torch.save({"table": table.cpu(), "labels": labels}, "table.pt")
