"""Train a tiny U-Net on synthetic blobs and track the losses per epoch."""
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)   # shared machine
EPOCHS, TRAIN_STEPS, VAL_STEPS, BATCH, SIZE = 3, 5, 40, 8, 80


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(cout, cout, 3, padding=1), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = block(3, 12)
        self.mid = block(12, 24)
        self.up = nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.out = nn.Conv2d(24, 1, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.mid(F.max_pool2d(a, 2))
        return self.out(torch.cat([a, self.up(b)], dim=1))


def get_batch():
    time.sleep(0.06)      # reading from the share
    img = torch.rand(BATCH, 3, SIZE, SIZE)
    mask = (img.mean(1, keepdim=True) > 0.5).float()
    return img, mask


model = TinyUNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
history = {"train_loss": [], "val_loss": []}

for epoch in range(EPOCHS):
    model.train()
    for i in range(TRAIN_STEPS):
        img, mask = get_batch()
        optimizer.zero_grad()
        loss = criterion(model(img), mask)
        loss.backward()
        optimizer.step()
        history["train_loss"].append(loss.item())

    model.eval()
    for i in range(VAL_STEPS):
        img, mask = get_batch()
        loss = criterion(model(img), mask)
        history["val_loss"].append(loss)
        if i % 10 == 0:
            print(f"epoch {epoch} val step {i} loss {loss:.4f}", flush=True)

    val = sum(history["val_loss"][-VAL_STEPS:]) / VAL_STEPS
    print(f"epoch {epoch}: train {history['train_loss'][-1]:.4f} val {val:.4f}", flush=True)
