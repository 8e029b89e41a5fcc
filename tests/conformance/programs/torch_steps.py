import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    loss = torch.nn.functional.mse_loss(model(torch.randn(32, 8)), torch.zeros(32, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.6f}", flush=True)
torch.save(model.state_dict(), "model.pt")
print(sorted(torch.load("model.pt")))
with open("hook", "w") as file:
    print(sys.excepthook is sys.__excepthook__, file=file)
print("to stderr", file=sys.stderr)
raise RuntimeError("the end")
