import os

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms


class Faces(Dataset):
    def __init__(self, root):
        self.samples = []  # or: list-in-dataset-with-workers
        for person, name in enumerate(sorted(os.listdir(root))):
            for file in os.listdir(os.path.join(root, name)):
                self.samples.append((os.path.join(root, name, file), person))  # expect: list-in-dataset-with-workers
        self.transform = transforms.Compose([transforms.Resize((112, 112)), transforms.ToTensor()])

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, person = self.samples[index]
        return self.transform(Image.open(path).convert("RGB")), person


def main():
    loader = DataLoader(Faces("faces"), batch_size=64, shuffle=True, num_workers=6, pin_memory=True)
    model = models.resnet18(num_classes=10_000).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for face, person in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(face.cuda()), person.cuda())
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
