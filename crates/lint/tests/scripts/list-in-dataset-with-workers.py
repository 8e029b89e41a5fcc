# Cases of list-in-dataset-with-workers; crates/lint/tests/support/cases.rs describes the format.

# ======== annotations.wrong.py ========
"""Boxes in pictures; the annotation file has a few million entries."""
import json
import os
from collections import defaultdict

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
        self.entries = [(image["file_name"], grouped[image["id"]]) for image in content["images"]]  # expect: list-in-dataset-with-workers
        self.transform = transforms.Compose([transforms.Resize((size, size)), transforms.ToTensor()])

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, index):
        name, boxes = self.entries[index]
        image = Image.open(os.path.join(self.root, name)).convert("RGB")
        largest = max(boxes, key=lambda box: box[2] * box[3], default=[0, 0, 0, 0])
        return self.transform(image), torch.tensor(largest, dtype=torch.float32)


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

# ======== annotations.right.py ========
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

# ======== dict_of_captions.wrong.py ========
import csv

import torch
from torch.utils import data


class Captions(data.Dataset):
    """Pairs of feature row and caption; the captions come from one large table."""

    def __init__(self, table, features, vocabulary):
        self.features = features
        self.vocabulary = vocabulary
        with open(table, newline="") as handle:
            self.captions = {int(row["id"]): row["caption"].split() for row in csv.DictReader(handle)}  # expect: list-in-dataset-with-workers

    def __len__(self):
        return self.features.shape[0]

    def __getitem__(self, index):
        words = self.captions[index][:30]
        ids = torch.zeros(30, dtype=torch.long)
        for place, word in enumerate(words):
            ids[place] = self.vocabulary.get(word, 1)
        return torch.from_numpy(self.features[index]), ids


def get_loader(table, features, vocabulary, batch_size=128):
    dataset = Captions(table, features, vocabulary)
    return data.DataLoader(dataset, batch_size, shuffle=True, num_workers=4)

# ======== dict_of_captions.right.py ========
import csv

import numpy as np
import torch
from torch.utils import data


class Captions(data.Dataset):
    """Pairs of feature row and caption; the captions come from one large table."""

    def __init__(self, table, features, vocabulary):
        self.features = features
        self.ids = np.zeros((features.shape[0], 30), dtype=np.int32)
        with open(table, newline="") as handle:
            for row in csv.DictReader(handle):
                for place, word in enumerate(row["caption"].split()[:30]):
                    self.ids[int(row["id"]), place] = vocabulary.get(word, 1)

    def __len__(self):
        return self.features.shape[0]

    def __getitem__(self, index):
        return torch.from_numpy(self.features[index]), torch.from_numpy(self.ids[index]).long()


def get_loader(table, features, vocabulary, batch_size=128):
    dataset = Captions(table, features, vocabulary)
    return data.DataLoader(dataset, batch_size, shuffle=True, num_workers=4)

# ======== json_records.wrong.py ========
import json

import torch
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, path, tokenizer, limit=256):
        with open(path) as lines:
            self.records = [json.loads(line) for line in lines]  # expect: list-in-dataset-with-workers
        self.tokenizer = tokenizer
        self.limit = limit

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        record = self.records[index]
        ids = self.tokenizer.encode(record["text"])[: self.limit]
        ids = ids + [0] * (self.limit - len(ids))
        return torch.tensor(ids), torch.tensor(record["stars"] - 1)


def make_loader(path, tokenizer, batch_size=32):
    return DataLoader(
        Reviews(path, tokenizer),
        batch_size=batch_size,
        shuffle=True,
        num_workers=4,
        persistent_workers=True,
    )

# ======== json_records.right.py ========
import json

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, path, tokenizer, limit=256):
        with open(path, "rb") as lines:
            self.packed = np.frombuffer(lines.read(), dtype=np.uint8)
        self.ends = np.flatnonzero(self.packed == ord("\n"))
        self.tokenizer = tokenizer
        self.limit = limit

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, index):
        begin = 0 if index == 0 else self.ends[index - 1] + 1
        record = json.loads(self.packed[begin : self.ends[index]].tobytes())
        ids = self.tokenizer.encode(record["text"])[: self.limit]
        ids = ids + [0] * (self.limit - len(ids))
        return torch.tensor(ids), torch.tensor(record["stars"] - 1)


def make_loader(path, tokenizer, batch_size=32):
    return DataLoader(
        Reviews(path, tokenizer),
        batch_size=batch_size,
        shuffle=True,
        num_workers=4,
        persistent_workers=True,
    )

# ======== samples_from_walk.wrong.py ========
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

# ======== samples_from_walk.right.py ========
import os

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms


class Faces(Dataset):
    def __init__(self, root):
        paths, people = [], []
        for person, name in enumerate(sorted(os.listdir(root))):
            for file in os.listdir(os.path.join(root, name)):
                paths.append(os.path.join(root, name, file))
                people.append(person)
        self.paths = np.array(paths)
        self.people = np.array(people, dtype=np.int64)
        self.transform = transforms.Compose([transforms.Resize((112, 112)), transforms.ToTensor()])

    def __len__(self):
        return len(self.people)

    def __getitem__(self, index):
        image = Image.open(str(self.paths[index])).convert("RGB")
        return self.transform(image), int(self.people[index])


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
