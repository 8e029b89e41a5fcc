"""Small ViT; I want to look at the attention of the last block after training."""
import time
import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.attn_drop = nn.Dropout(0.0)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).view(B, N, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1) * (C // self.h) ** -0.5).softmax(-1)
        att = self.attn_drop(att)
        return self.proj((att @ v).transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, dim=64, heads=4, depth=2, n_classes=10):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 4, 4)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.fc = nn.Linear(dim, n_classes)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2)
        return self.fc(self.blocks(x).mean(1))


class AttnRecorder:
    def __init__(self, module):
        self.maps = []
        self.handle = module.register_forward_hook(self.hook)

    def hook(self, module, inp, out):
        self.maps.append(out.detach().cpu().clone())


torch.manual_seed(0)
torch.set_num_threads(1)   # shared machine
vit = ViT()
rec = AttnRecorder(vit.blocks[-1].attn.attn_drop)
opt = torch.optim.AdamW(vit.parameters(), lr=3e-4)
ce = nn.CrossEntropyLoss()

for it in range(85):
    time.sleep(0.03)      # augmentation of the real images
    images = torch.randn(12, 3, 64, 64)
    labels = torch.randint(0, 10, (12,))
    loss = ce(vit(images), labels)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if it % 10 == 0:
        print(f"iter {it} loss {loss.item():.3f}", flush=True)

rec.handle.remove()
last = rec.maps[-1]
print("last attention map", tuple(last.shape), "entropy",
      -(last * (last + 1e-9).log()).sum(-1).mean().item())
