import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
config = {"batch_size": 512, "epochs": 1, "lr": 0.1}
images, labels = torch.rand(512, 3, 32, 32), torch.randint(0, 10, (512,))
layers = []
for width in (3, 24, 24, 24):
    layers += [nn.Conv2d(width, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU()]
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
for epoch in range(config["epochs"]):
    for begin in range(0, len(images), config["batch_size"]):
        chosen = slice(begin, begin + config["batch_size"])
        loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", float(loss))
