# Cases of innocent; crates/lint/tests/support/cases.rs describes the format.

# ======== accelerate_loop.py ========
import torch
from accelerate import Accelerator
from torch import nn


def main(model, loader, epochs=3):
    accelerator = Accelerator(gradient_accumulation_steps=4, mixed_precision="fp16")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for step, (ids, labels) in enumerate(loader):
            with accelerator.accumulate(model):
                loss = criterion(model(ids), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if step % 50 == 0:
                accelerator.print(epoch, step, loss.item())

# ======== accumulation_done_right.py ========
import torch
from torch import nn


def train_epoch(model, loader, optimizer, device, k=4):
    criterion = nn.CrossEntropyLoss()
    model.train()
    total = 0.0
    last = len(loader)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, start=1):
        loss = criterion(model(x.to(device)), y.to(device))
        (loss / k).backward()
        total += loss.item()
        if i % k == 0 or i == last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return total / last


def main(model, loader, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for epoch in range(3):
        print(epoch, train_epoch(model, loader, optimizer, device))

# ======== attention_softmax.py ========
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(w // self.heads), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, w))


class Classifier(nn.Module):
    def __init__(self, vocab, classes, width=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.attention = Attention(width, 4)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        return self.head(self.attention(self.embed(ids)).mean(dim=1))


def train_step(model, optimizer, ids, labels):
    criterion = nn.CrossEntropyLoss()
    optimizer.zero_grad()
    loss = criterion(model(ids), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()

# ======== backward_with_vector.py ========
"""backward of a vector is fine when it is told what to multiply with."""
import torch
from torch import nn


def step(model, optimizer, x, y, weight):
    each = nn.functional.cross_entropy(model(x), y, reduction="none")
    optimizer.zero_grad()
    each.backward(gradient=weight / weight.sum())
    optimizer.step()
    return each.detach().mean().item()


def hard_examples(model, optimizer, x, y, keep=8):
    each = nn.functional.mse_loss(model(x), y, reduction="none").mean(dim=1)
    loss = each.topk(keep).values.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(loader):
    model = nn.Linear(10, 4)
    optimizer = torch.optim.Adam(model.parameters())
    for x, y, weight in loader:
        step(model, optimizer, x, y, weight)

# ======== bfloat16_autocast.py ========
import torch
from torch import nn


def train(model, loader, epochs, device="cuda"):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    criterion = nn.CrossEntropyLoss()
    model.to(device).train()
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device, dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))

# ======== called_under_no_grad.py ========
import torch
import torch.nn.functional as F


def batch_loss(model, batch, device):
    x, y = batch
    return F.cross_entropy(model(x.to(device)), y.to(device))


def mean_loss(model, loader, device):
    model.eval()
    total = 0.0
    for batch in loader:
        total += batch_loss(model, batch, device)
    return total / len(loader)


def main(model, train_loader, val_loader, device, epochs=10):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        model.train()
        for batch in train_loader:
            optimizer.zero_grad()
            batch_loss(model, batch, device).backward()
            optimizer.step()
        with torch.no_grad():
            value = mean_loss(model, val_loader, device)
        print(epoch, value.item())

# ======== cleared_list_each_step.py ========
import torch
from torch import nn


class Aggregator:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.losses = []

    def add(self, x, y):
        self.losses.append(nn.functional.l1_loss(self.model(x), y))

    def flush(self):
        total = sum(self.losses)
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        self.losses = []
        return total.item()


def train(model, loader, views):
    aggregator = Aggregator(model)
    for scene, target in loader:
        for view in views:
            aggregator.add(view(scene), target)
        aggregator.flush()

# ======== compute_loss_for_caller.py ========
"""Functions that call the model without backward, because their caller does it."""
import torch
import torch.nn.functional as F


def forward_both(model, a, b):
    return model(a), model(b)


def contrastive_loss(model, a, b, margin=1.0):
    za, zb = forward_both(model, a, b)
    near = F.pairwise_distance(za, zb)
    far = F.pairwise_distance(za, zb.roll(1, dims=0))
    return F.relu(margin + near - far).mean()


def regulariser(model, factor=1e-5):
    return factor * sum(p.pow(2).sum() for p in model.parameters())


def fit(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for a, b in loader:
            optimizer.zero_grad()
            loss = contrastive_loss(model, a, b) + regulariser(model)
            loss.backward()
            optimizer.step()

# ======== deepspeed_engine.py ========
import argparse

import deepspeed
import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser = deepspeed.add_config_arguments(parser)
    args = parser.parse_args()
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
    engine, optimizer, _, _ = deepspeed.initialize(
        args=args, model=model, model_parameters=model.parameters()
    )
    for step in range(1000):
        x = torch.randn(8, 1024, device=engine.device, dtype=torch.half)
        loss = nn.functional.mse_loss(engine(x), x)
        engine.backward(loss)
        engine.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()

# ======== detached_then_stacked.py ========
import torch
from torch import nn


def train_epoch(model, loader, optimizer, criterion, device):
    """Waits for the card once an epoch, not once a step."""
    model.train()
    losses = []
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


def main(model, loader, device="cuda"):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        print(epoch, train_epoch(model, loader, optimizer, nn.CrossEntropyLoss(), device))

# ======== division_by_counts.py ========
import torch
import torch.nn.functional as F


def masked_mean(loss, mask):
    return (loss * mask).sum() / mask.sum().clamp(min=1)


def dice(probs, target, smooth=1.0):
    overlap = (probs * target).sum()
    return 1 - (2 * overlap + smooth) / (probs.sum() + target.sum() + smooth)


def cosine(a, b):
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)).clamp_min(1e-8)


def train(model, loader, optimizer, temperature=0.1):
    for image, target, mask in loader:
        logits = model(image) / temperature
        raw = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        loss = masked_mean(raw, mask) + dice(torch.sigmoid(logits), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# ======== ema_update.py ========
import copy

import torch
import torch.nn.functional as F


class Teacher:
    def __init__(self, student, decay=0.999):
        self.model = copy.deepcopy(student).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, student):
        for ours, theirs in zip(self.model.parameters(), student.parameters()):
            ours.mul_(self.decay).add_(theirs, alpha=1 - self.decay)

    @torch.no_grad()
    def __call__(self, x):
        return self.model(x)


def train(student, loader, epochs=10):
    teacher = Teacher(student)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for _ in range(epochs):
        for weak, strong in loader:
            loss = F.mse_loss(student(strong), teacher(weak))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            teacher.update(student)

# ======== ensemble_of_torch_models.py ========
"""A new torch model for each member is no leak: the old ones are kept on purpose, and are few."""
import torch
from torch import nn


def train_member(loader, seed, epochs=5):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return model.eval()


def main(loader, test, members=5):
    models = []
    for seed in range(members):
        models.append(train_member(loader, seed))
    with torch.no_grad():
        votes = torch.stack([model(test) for model in models])
    print(votes.mean(dim=0), votes.std(dim=0))

# ======== evaluation_cat.py ========
import torch
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader


@torch.no_grad()
def predict(model, loader: DataLoader, device):
    model.eval()
    scores, truth = [], []
    for x, y in loader:
        logits = model(x.to(device))
        scores.append(torch.sigmoid(logits).cpu())
        truth.append(y)
    return torch.cat(scores), torch.cat(truth)


def evaluate(model, loader, device):
    scores, truth = predict(model, loader, device)
    auc = roc_auc_score(truth.numpy(), scores.numpy())
    top = scores.topk(10, dim=0).values
    print("auc", auc, "top", top.flatten().tolist())
    return auc

# ======== fp16_inference_only.py ========
import torch
from torch.utils.data import DataLoader


def export(model, dataset, path):
    model = model.cuda().eval()
    loader = DataLoader(dataset, batch_size=256)
    out = []
    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
        for x in loader:
            out.append(model(x.cuda()).float().cpu())
    torch.save(torch.cat(out), path)


def main(model, dataset):
    export(model, dataset, "embeddings.pt")
    print("written", len(dataset), "rows")

# ======== full_batch_on_hundred_rows.py ========
import torch
import torch.nn as nn

N, IN, HIDDEN, OUT = 64, 1000, 100, 10
x = torch.randn(N, IN)
y = torch.randn(N, OUT)
model = nn.Sequential(nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT))
criterion = nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

for t in range(500):
    y_pred = model(x)
    loss = criterion(y_pred, y)
    if t % 100 == 99:
        print(t, loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# ======== gan_retain_graph.py ========
"""The critic's pass is used again by the generator, so the graph has to stay."""
import torch
from torch import nn


def train(generator, critic, loader, latent=64, epochs=10):
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for real, _ in loader:
            fake = generator(torch.randn(real.size(0), latent))
            real_score = critic(real)
            fake_score = critic(fake)
            d_loss = bce(real_score, torch.ones_like(real_score)) + bce(fake_score, torch.zeros_like(fake_score))
            g_loss = bce(fake_score, torch.ones_like(fake_score))
            opt_d.zero_grad()
            d_loss.backward(retain_graph=True, inputs=list(critic.parameters()))
            opt_g.zero_grad()
            g_loss.backward(inputs=list(generator.parameters()))
            opt_d.step()
            opt_g.step()
        print(epoch, d_loss.item(), g_loss.item())

# ======== gradient_penalty.py ========
import torch


def penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    grads = torch.autograd.grad(score.sum(), between, create_graph=True)[0]
    return ((grads.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def train(generator, critic, loader, latent=128, critic_steps=5, device="cuda"):
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    for i, (real, _) in enumerate(loader):
        real = real.to(device)
        fake = generator(torch.randn(real.size(0), latent, device=device))
        opt_d.zero_grad()
        d_loss = critic(fake.detach()).mean() - critic(real).mean()
        d_loss = d_loss + 10 * penalty(critic, real, fake.detach())
        d_loss.backward()
        opt_d.step()
        if (i + 1) % critic_steps == 0:
            opt_g.zero_grad()
            g_loss = -critic(generator(torch.randn(real.size(0), latent, device=device))).mean()
            g_loss.backward()
            opt_g.step()

# ======== huggingface_trainer.py ========
import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.tensor(self.class_weights, device=outputs.logits.device)
        loss = nn.functional.cross_entropy(outputs.logits, labels, weight=weight)
        return (loss, outputs) if return_outputs else loss


def main(model, train_set, eval_set):
    arguments = TrainingArguments(
        "out",
        per_device_train_batch_size=8,
        gradient_accumulation_steps=4,
        num_train_epochs=3,
    )
    trainer = WeightedTrainer(
        model, arguments, train_dataset=train_set, eval_dataset=eval_set, class_weights=[1.0, 3.0]
    )
    trainer.train()
    print(trainer.evaluate())

# ======== iris_full_batch.py ========
import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    flowers = load_iris()
    x = torch.tensor(flowers.data, dtype=torch.float32)
    y = torch.tensor(flowers.target)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    loader = DataLoader(TensorDataset(x, y), batch_size=150)
    for epoch in range(200):
        for inputs, kinds in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), kinds)
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        print((model(x).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()

# ======== jax_training.py ========
import jax
import jax.numpy as jnp
import optax


def predict(params, x):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def train(params, batches, lr=1e-3, epochs=10):
    optimizer = optax.adam(lr)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for _ in range(epochs):
        total = 0.0
        for x, y in batches:
            params, state, loss = step(params, state, x, y)
            total += loss
            losses.append(loss)
    return params, losses

# ======== keras_predict_once.py ========
import numpy as np
from tensorflow import keras


def main(x_train, y_train, x_test):
    model = keras.Sequential([
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(3, activation="softmax"),
    ])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, epochs=10, batch_size=32, validation_split=0.1)
    probs = model.predict(x_test, batch_size=256)
    for row, kind in enumerate(np.argmax(probs, axis=1)):
        if probs[row, kind] < 0.5:
            print("not sure about", row)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    main(rng.random((300, 4)), rng.integers(0, 3, 300), rng.random((50, 4)))

# ======== lbfgs_closure.py ========
import torch
from torch import nn


def fit(x, y, steps=50):
    model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=20)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for step in range(steps):
        loss = optimizer.step(closure)
        if step % 10 == 0:
            print(step, loss.item())
    return model


if __name__ == "__main__":
    points = torch.linspace(0, 1, 100).unsqueeze(1)
    fit(points, torch.sin(6 * points))

# ======== lightning_module.py ========
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn


class Lit(pl.LightningModule):
    """The framework steps, clears gradients and turns them off for validation."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 2))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        return logits.argmax(dim=1)

    def predict_step(self, batch, batch_idx):
        return self(batch[0]).softmax(dim=1)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

# ======== log_guarded.py ========
import torch
from torch import nn

EPS = 1e-8


def entropy(probs):
    return -(probs * torch.log(probs + EPS)).sum(dim=-1)


def cross_entropy(probs, target):
    return -torch.log(probs.gather(1, target[:, None]).clamp_min(EPS)).mean()


def from_sigmoid(logits):
    p = torch.sigmoid(logits).clamp(1e-6, 1 - 1e-6)
    return torch.log(p) - torch.log1p(-p)


def train(model, loader, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for x, y in loader:
        probs = nn.functional.softmax(model(x), dim=-1)
        loss = cross_entropy(probs, y) + 0.1 * entropy(probs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# ======== log_of_sizes.py ========
"""Logarithms of things that are never zero: lengths, counts, softplus plus a floor."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class SinusoidalTime(nn.Module):
    def __init__(self, width):
        super().__init__()
        scale = math.log(10_000) / (width // 2 - 1)
        self.register_buffer("freq", torch.exp(-scale * torch.arange(width // 2)))

    def forward(self, t):
        angle = t[:, None] * self.freq[None]
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


class Gaussian(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.mean = nn.Linear(inputs, 1)
        self.spread = nn.Linear(inputs, 1)

    def forward(self, x, y):
        sigma = F.softplus(self.spread(x)) + 1e-3
        z = (y - self.mean(x)) / sigma
        return (0.5 * z.pow(2) + torch.log(sigma)).mean()


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    return loss.item()

# ======== loss_returns_float.py ========
import torch
from torch import nn


class Worker:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.losses = []

    def loss(self, x, y):
        """One step; what it cost, as a plain number."""
        self.optimizer.zero_grad()
        value = nn.functional.mse_loss(self.model(x), y)
        value.backward()
        self.optimizer.step()
        return float(value)

    def run(self, loader):
        total = 0.0
        for x, y in loader:
            loss = self.loss(x, y)
            total += loss
            self.losses.append(loss)
        return total / len(loader)

# ======== maml_inner_loop.py ========
import torch
import torch.nn.functional as F
from torch.func import functional_call


def adapt(model, params, x, y, steps=5, rate=0.01):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {name: p - rate * g for (name, p), g in zip(params.items(), grads)}
    return params


def meta_train(model, task_batches, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for tasks in task_batches:
        optimizer.zero_grad()
        outer = 0.0
        for support, query in tasks:
            fast = adapt(model, dict(model.named_parameters()), *support)
            outer = outer + F.mse_loss(functional_call(model, fast, (query[0],)), query[1])
        (outer / len(tasks)).backward()
        optimizer.step()

# ======== metrics_objects.py ========
import torch
import torchmetrics
from torch import nn


def train_epoch(model, loader, optimizer, device, classes):
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=classes).to(device)
    mean_loss = torchmetrics.MeanMetric().to(device)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        accuracy.update(logits.detach(), y)
        mean_loss.update(loss.detach())
    return accuracy.compute().item(), mean_loss.compute().item()


def main(model, loader, device="cuda", classes=10):
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(20):
        print(epoch, train_epoch(model, loader, optimizer, device, classes))

# ======== multi_task_heads.py ========
import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self, inputs, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(64, size) for name, size in tasks.items()})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def train(loader, tasks, weights, epochs=10):
    model = MultiTask(100, tasks)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        running = 0.0
        for x, labels in loader:
            outputs = model(x)
            total = 0
            for name, logits in outputs.items():
                loss = criterion(logits, labels[name])
                total = total + weights[name] * loss
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            running += total.item()
        print(epoch, running / len(loader))

# ======== numpy_only.py ========
import numpy as np


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def train(x, y, epochs=100, lr=0.1):
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=x.shape[1]), 0.0
    history = []
    for epoch in range(epochs):
        loss = 0.0
        for row, label in zip(x, y):
            p = sigmoid(row @ w + b)
            loss += -(label * np.log(p + 1e-12) + (1 - label) * np.log(1 - p + 1e-12))
            w -= lr * (p - label) * row
            b -= lr * (p - label)
        history.append(loss / len(x))
    return w, b, history


if __name__ == "__main__":
    data = np.random.default_rng(1).normal(size=(400, 5))
    print(train(data, (data.sum(axis=1) > 0).astype(float))[2][-1])

# ======== oom_flag_then_retry.py ========
import torch
import torch.nn.functional as F


def find_batch_size(model, sample, start=512):
    """Halves until one step fits. The retry is outside the handler, where nothing is held."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    size = start
    while size > 0:
        failed = False
        try:
            optimizer.zero_grad(set_to_none=True)
            out = model(sample.expand(size, *sample.shape).cuda())
            F.mse_loss(out, torch.zeros_like(out)).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            failed = True
        if not failed:
            return size
        torch.cuda.empty_cache()
        size //= 2
    raise RuntimeError("even a batch of one does not fit")

# ======== parameters_zeroed_by_hand.py ========
import torch
from torch import nn


def train(model, loader, lr=0.01, epochs=5):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        for x, y in loader:
            for parameter in model.parameters():
                parameter.grad = None
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()


def plain_descent(x, y, steps=100, rate=0.1):
    w = torch.zeros(x.size(1), requires_grad=True)
    for _ in range(steps):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= rate * w.grad
            w.grad.zero_()
    return w.detach()

# ======== paths_not_arrays.py ========
"""Comprehensions over paths that load nothing, or only little at a time."""
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, root):
        self.paths = [str(p) for p in sorted(Path(root).rglob("*.npy"))]
        self.lengths = np.array([np.load(p, mmap_mode="r").shape[0] for p in self.paths])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.paths[index]).astype("float32"))


def collate(items):
    return torch.stack([item[:100] for item in items])


def main(root):
    loader = DataLoader(Frames(root), batch_size=8, collate_fn=collate)
    first = next(iter(loader))
    print(first.shape, first.mean().item())

# ======== ppo_buffer.py ========
import torch
from torch import nn
from torch.distributions import Categorical


class Buffer:
    def __init__(self):
        self.states, self.actions, self.log_probs, self.rewards = [], [], [], []

    def clear(self):
        for part in (self.states, self.actions, self.log_probs, self.rewards):
            part.clear()


class PPO:
    def __init__(self, inputs, actions, clip=0.2):
        self.policy = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, actions))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4)
        self.buffer = Buffer()
        self.clip = clip

    @torch.no_grad()
    def act(self, state):
        state = torch.as_tensor(state, dtype=torch.float32)
        dist = Categorical(logits=self.policy(state))
        action = dist.sample()
        self.buffer.states.append(state)
        self.buffer.actions.append(action)
        self.buffer.log_probs.append(dist.log_prob(action))
        return int(action)

    def update(self, epochs=4):
        states = torch.stack(self.buffer.states)
        actions = torch.stack(self.buffer.actions)
        old = torch.stack(self.buffer.log_probs)
        returns = torch.tensor(self.buffer.rewards)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-8)
        for _ in range(epochs):
            new = Categorical(logits=self.policy(states)).log_prob(actions)
            ratio = (new - old).exp()
            clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
            loss = -torch.min(ratio * advantages, clipped * advantages).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.buffer.clear()

# ======== replay_deque.py ========
import random
from collections import deque, namedtuple

import torch
from torch import nn

Step = namedtuple("Step", "state action reward following")


def learn(env, network, target, episodes=500, gamma=0.99, batch_size=64):
    memory = deque(maxlen=20_000)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for episode in range(episodes):
        state = torch.tensor(env.reset()[0])
        done = False
        while not done:
            with torch.no_grad():
                action = network(state).argmax()
            following, reward, ended, cut, _ = env.step(action.item())
            following = torch.tensor(following)
            done = ended or cut
            memory.append(Step(state, action, torch.tensor(float(reward)), following))
            state = following
            if len(memory) < batch_size:
                continue
            batch = Step(*(torch.stack(part) for part in zip(*random.sample(memory, batch_size))))
            with torch.no_grad():
                goal = batch.reward + gamma * target(batch.following).max(1).values
            value = network(batch.state).gather(1, batch.action.unsqueeze(1)).squeeze(1)
            loss = nn.functional.mse_loss(value, goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if episode % 10 == 0:
            target.load_state_dict(network.state_dict())

# ======== reset_grad_helper.py ========
import torch
import torch.nn.functional as F


class Solver:
    def __init__(self, generator, critic, lr=1e-4):
        self.G = generator
        self.D = critic
        self.g_optimizer = torch.optim.Adam(generator.parameters(), lr, (0.5, 0.999))
        self.d_optimizer = torch.optim.Adam(critic.parameters(), lr, (0.5, 0.999))

    def reset_grad(self):
        self.g_optimizer.zero_grad()
        self.d_optimizer.zero_grad()

    def train(self, loader, steps=100_000, every=5):
        data = iter(loader)
        for i in range(steps):
            try:
                real = next(data)
            except StopIteration:
                data = iter(loader)
                real = next(data)
            fake = self.G(torch.randn(real.size(0), 128))
            d_loss = F.relu(1 - self.D(real)).mean() + F.relu(1 + self.D(fake.detach())).mean()
            self.reset_grad()
            d_loss.backward()
            self.d_optimizer.step()
            if (i + 1) % every == 0:
                g_loss = -self.D(fake).mean()
                self.reset_grad()
                g_loss.backward()
                self.g_optimizer.step()

# ======== sklearn_cross_validation.py ========
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import KFold


def main(path="houses.csv"):
    table = pd.read_csv(path)
    y = table.pop("price").to_numpy()
    x = table.select_dtypes("number").fillna(0).to_numpy()
    losses, predictions = [], np.zeros(len(y))
    total = 0.0
    for fold, (train, test) in enumerate(KFold(5, shuffle=True, random_state=0).split(x)):
        model = GradientBoostingRegressor()
        model.fit(x[train], y[train])
        predictions[test] = model.predict(x[test])
        loss = mean_absolute_error(y[test], predictions[test])
        total += loss
        losses.append(loss)
        print("fold", fold, loss)
    print(total / len(losses))


if __name__ == "__main__":
    main()

# ======== small_lists_with_workers.py ========
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    CHANNELS = ["x", "y", "z"]

    def __init__(self, path, length=128):
        self.table = np.load(path, mmap_mode="r")
        self.length = length
        self.names = [f"accelerometer {axis}" for axis in self.CHANNELS]
        self.shape = [len(self.CHANNELS), length]

    def __len__(self):
        return len(self.table) - self.length

    def __getitem__(self, start):
        rows = np.array(self.table[start:start + self.length, :3], dtype=np.float32)
        return torch.from_numpy(rows.T)


def make(path):
    return DataLoader(Windows(path), batch_size=64, shuffle=True, num_workers=4)

# ======== softmax_only_for_metrics.py ========
import torch
from torch import nn


def run(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    confident, seen = 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        probs = torch.softmax(logits.detach(), dim=1)
        confident += (probs.max(dim=1).values > 0.9).sum().item()
        seen += y.numel()
    return confident / seen


def main(model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        print(epoch, run(model, loader, optimizer, "cpu"))

# ======== stacked_losses_each_step.py ========
import torch
import torch.nn.functional as F
from torch import optim


def train(decoder, loader, epochs, lr=1e-3):
    optimizer = optim.Adam(decoder.parameters(), lr=lr)
    for epoch in range(epochs):
        for state, sequence in loader:
            losses = []
            for t in range(sequence.size(1) - 1):
                logits, state = decoder(sequence[:, t], state)
                losses.append(F.cross_entropy(logits, sequence[:, t + 1]))
            loss = torch.stack(losses).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


def sample(decoder, token, state, length=50):
    out = [token]
    with torch.no_grad():
        for _ in range(length):
            logits, state = decoder(token, state)
            token = logits.argmax(-1)
            out.append(token.cpu())
    return out

# ======== style_transfer.py ========
"""The picture itself is optimised; the network is frozen and its features are kept once."""
import torch
import torch.nn.functional as F
from torchvision.models import vgg19


def gram(x):
    flat = x.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[1:].numel()


def transfer(content, style, steps=300):
    features = vgg19(weights="DEFAULT").features[:20].eval()
    for parameter in features.parameters():
        parameter.requires_grad_(False)
    with torch.no_grad():
        wanted = features(content)
        texture = gram(features(style))
    picture = content.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([picture], lr=0.02)
    for step in range(steps):
        optimizer.zero_grad()
        found = features(picture)
        loss = F.mse_loss(found, wanted) + 1e4 * F.mse_loss(gram(found), texture)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())
    return picture.detach()

# ======== tape_per_step.py ========
"""The tape is gone at the end of each step; nothing has to be deleted by hand."""
import tensorflow as tf


@tf.function
def step(model, optimizer, loss_fn, x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def train(model, dataset, epochs):
    optimizer = tf.keras.optimizers.Adam()
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    history = []
    for epoch in range(epochs):
        total, batches = 0.0, 0
        for x, y in dataset:
            total += step(model, optimizer, loss_fn, x, y)
            batches += 1
        history.append(float(total) / batches)
    return history

# ======== test_functions.py ========
import pytest
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.inner(x))


@pytest.mark.parametrize("width", [1, 8, 64])
def test_shape(width):
    model = Residual(width)
    out = model(torch.randn(4, width))
    assert out.shape == (4, width)


def test_gradient_flows():
    model = Residual(8)
    model(torch.randn(2, 8)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_eval_is_deterministic():
    model = Residual(8).eval()
    x = torch.randn(3, 8)
    assert torch.equal(model(x), model(x))

# ======== toy_data_on_gpu.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
x = torch.randn(1000, 20).to(device)
y = (x.sum(dim=1, keepdim=True) > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(30):
    for inputs, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), target)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

# ======== truncated_bptt.py ========
import torch
from torch import nn


def train(cell, readout, stream, k=20, lr=1e-3):
    optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()], lr=lr)
    h = torch.zeros(stream.size(1), cell.hidden_size)
    window = 0.0
    for t in range(stream.size(0) - 1):
        h = cell(stream[t], h)
        window = window + nn.functional.mse_loss(readout(h), stream[t + 1])
        if (t + 1) % k == 0:
            optimizer.zero_grad()
            (window / k).backward()
            optimizer.step()
            h = h.detach()
            window = 0.0


def main():
    cell, readout = nn.GRUCell(6, 48), nn.Linear(48, 6)
    train(cell, readout, torch.randn(2001, 16, 6))
    torch.save(cell.state_dict(), "cell.pt")


if __name__ == "__main__":
    main()

# ======== workers_from_machine.py ========
import os

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData
from torchvision.transforms import ToTensor


def main():
    workers = min(8, os.cpu_count() or 1)
    loader = DataLoader(FakeData(transform=ToTensor()), batch_size=32, num_workers=workers)
    model = nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(192, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for image, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
