import torch
import torch.nn as nn


class Upscaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 128, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 128, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 3, 3, padding=1),
        )

    def forward(self, x):
        return self.net(x)


def main(steps=1000, batch_size=64):
    model = Upscaler().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(steps):
        images = torch.rand(batch_size, 3, 512, 512, device="cuda")  # or: batch-too-large-here
        blurred = nn.functional.avg_pool2d(images, 3, stride=1, padding=1)
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(blurred), images)  # expect: batch-too-large-here
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
