# cause: none
# needs: torch
# budget: 2GB
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(size=64):
    optimizer.zero_grad()
    loss = model(torch.randn(size, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

@torch.compile(backend="aot_eager")
def forward(x):
    return model(x).pow(2).mean()


for number in range(300):
    optimizer.zero_grad()
    forward(torch.randn(64 + number // 100, 256)).backward()
    optimizer.step()
