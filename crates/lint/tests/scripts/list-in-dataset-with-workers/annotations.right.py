"""Boxes in pictures; the annotation file has a few million entries."""
import json
import os
from collections import defaultdict

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms


class Boxes(Dataset):
    def __init__(self, root, annotation_file, size=320):
        self.root = root
        with open(annotation_file) as handle:
            content = json.load(handle)
        grouped = defaultdict(list)
        for entry in content["annotations"]:
            grouped[entry["image_id"]].append(entry["bbox"])
        self.names = np.array([image["file_name"] for image in content["images"]])
        self.largest = np.zeros((len(self.names), 4), dtype=np.float32)
        for row, image in enumerate(content["images"]):
            for box in grouped[image["id"]]:
                if box[2] * box[3] > self.largest[row, 2] * self.largest[row, 3]:
                    self.largest[row] = box
        self.transform = transforms.Compose([transforms.Resize((size, size)), transforms.ToTensor()])

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        image = Image.open(os.path.join(self.root, str(self.names[index]))).convert("RGB")
        return self.transform(image), torch.from_numpy(self.largest[index])


class Localiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(4),
        )
        self.box = nn.Linear(64 * 16, 4)

    def forward(self, image):
        return self.box(self.features(image).flatten(1))


def main(root="pictures", annotations="instances.json", epochs=12):
    dataset = Boxes(root, annotations)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4, pin_memory=True)
    model = Localiser().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(epochs):
        for image, box in loader:
            optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(image.cuda()), box.cuda())
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
