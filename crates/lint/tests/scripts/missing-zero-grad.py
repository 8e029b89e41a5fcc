# Cases of missing-zero-grad; crates/lint/tests/support/cases.rs describes the format.

# ======== amp_without_reset.wrong.py ========
"""ResNet-34 in half precision."""
import torch
from torch import nn
from torchvision import models


def train(loader, epochs=90):
    model = models.resnet34(num_classes=200).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    scaler = torch.cuda.amp.GradScaler()
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            with torch.cuda.amp.autocast():
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)  # expect: missing-zero-grad
            scaler.update()
        scheduler.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "resnet.pt")
    return model

# ======== amp_without_reset.right.py ========
"""ResNet-34 in half precision."""
import torch
from torch import nn
from torchvision import models


def train(loader, epochs=90):
    model = models.resnet34(num_classes=200).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    scaler = torch.cuda.amp.GradScaler()
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.cuda.amp.autocast():
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        scheduler.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "resnet.pt")
    return model

# ======== class_engine.wrong.py ========
import torch
import torch.nn as nn


class Engine:
    def __init__(self, model, criterion, optimizer, device):
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer
        self.device = device

    def train_fn(self, loader):
        self.model.train()
        final = 0.0
        for data in loader:
            inputs = data["x"].to(self.device)
            targets = data["y"].to(self.device)
            loss = self.criterion(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()  # expect: missing-zero-grad
            final += loss.item()
        return final / len(loader)

    @torch.no_grad()
    def eval_fn(self, loader):
        self.model.eval()
        final = 0.0
        for data in loader:
            outputs = self.model(data["x"].to(self.device))
            final += self.criterion(outputs, data["y"].to(self.device)).item()
        return final / len(loader)


def run(train_loader, valid_loader, device="cpu"):
    model = nn.Sequential(nn.Linear(875, 1024), nn.PReLU(), nn.Dropout(0.3), nn.Linear(1024, 206))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    engine = Engine(model.to(device), nn.BCEWithLogitsLoss(), optimizer, device)
    for epoch in range(20):
        print(epoch, engine.train_fn(train_loader), engine.eval_fn(valid_loader))

# ======== class_engine.right.py ========
import torch
import torch.nn as nn


class Engine:
    def __init__(self, model, criterion, optimizer, device):
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer
        self.device = device

    def train_fn(self, loader):
        self.model.train()
        final = 0.0
        for data in loader:
            inputs = data["x"].to(self.device)
            targets = data["y"].to(self.device)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()
            final += loss.item()
        return final / len(loader)

    @torch.no_grad()
    def eval_fn(self, loader):
        self.model.eval()
        final = 0.0
        for data in loader:
            outputs = self.model(data["x"].to(self.device))
            final += self.criterion(outputs, data["y"].to(self.device)).item()
        return final / len(loader)


def run(train_loader, valid_loader, device="cpu"):
    model = nn.Sequential(nn.Linear(875, 1024), nn.PReLU(), nn.Dropout(0.3), nn.Linear(1024, 206))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    engine = Engine(model.to(device), nn.BCEWithLogitsLoss(), optimizer, device)
    for epoch in range(20):
        print(epoch, engine.train_fn(train_loader), engine.eval_fn(valid_loader))

# ======== lightning_manual.wrong.py ========
import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn


class Pair(pl.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Linear(100, width)
        self.decoder = nn.Linear(width, 100)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        x, _ = batch
        rebuilt = self.decoder(torch.relu(self.encoder(x)))
        loss = F.mse_loss(rebuilt, x)
        self.manual_backward(loss)
        optimizer.step()  # expect: missing-zero-grad
        self.log("loss", loss, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main(loader):
    trainer = pl.Trainer(max_epochs=5)
    trainer.fit(Pair(), loader)

# ======== lightning_manual.right.py ========
import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn


class Pair(pl.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Linear(100, width)
        self.decoder = nn.Linear(width, 100)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        x, _ = batch
        rebuilt = self.decoder(torch.relu(self.encoder(x)))
        loss = F.mse_loss(rebuilt, x)
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        self.log("loss", loss, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main(loader):
    trainer = pl.Trainer(max_epochs=5)
    trainer.fit(Pair(), loader)

# ======== second_optimizer.wrong.py ========
import torch
import torch.nn.functional as F
from torch import nn


class Actor(nn.Module):
    def __init__(self, inputs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, actions))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


def update(actor, critic, actor_opt, critic_opt, batch):
    state, action, returns = batch
    value = critic(state).squeeze(-1)
    critic_loss = F.mse_loss(value, returns)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    advantage = returns - value.detach()
    policy_loss = -(actor(state).log_prob(action) * advantage).mean()
    policy_loss.backward()
    actor_opt.step()  # expect: missing-zero-grad
    return critic_loss.item(), policy_loss.item()


def main(batches, inputs=8, actions=4):
    actor = Actor(inputs, actions)
    critic = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 1))
    actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for batch in batches:
        update(actor, critic, actor_opt, critic_opt, batch)

# ======== second_optimizer.right.py ========
import torch
import torch.nn.functional as F
from torch import nn


class Actor(nn.Module):
    def __init__(self, inputs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, actions))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


def update(actor, critic, actor_opt, critic_opt, batch):
    state, action, returns = batch
    value = critic(state).squeeze(-1)
    critic_loss = F.mse_loss(value, returns)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    advantage = returns - value.detach()
    policy_loss = -(actor(state).log_prob(action) * advantage).mean()
    actor_opt.zero_grad()
    policy_loss.backward()
    actor_opt.step()
    return critic_loss.item(), policy_loss.item()


def main(batches, inputs=8, actions=4):
    actor = Actor(inputs, actions)
    critic = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 1))
    actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for batch in batches:
        update(actor, critic, actor_opt, critic_opt, batch)

# ======== two_functions.wrong.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def update(model, optimizer, x, y):
    loss = nn.functional.smooth_l1_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()  # expect: missing-zero-grad
    return loss.item()


def run(epochs=40):
    x = torch.randn(4000, 12)
    y = x[:, 0] * x[:, 1]
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        losses = [update(model, optimizer, xb, yb) for xb, yb in loader]
        print(epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    run()

# ======== two_functions.right.py ========
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def update(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.smooth_l1_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return loss.item()


def run(epochs=40):
    x = torch.randn(4000, 12)
    y = x[:, 0] * x[:, 1]
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        losses = [update(model, optimizer, xb, yb) for xb, yb in loader]
        print(epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    run()

# ======== zip_two_loaders.wrong.py ========
import torch
from torch import nn, optim


class FixMatch:
    """Labelled and unlabelled batches side by side."""

    def __init__(self, model, threshold=0.95):
        self.model = model
        self.threshold = threshold
        self.optim = optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
        self.ce = nn.CrossEntropyLoss()

    def unlabelled_loss(self, weak, strong):
        with torch.no_grad():
            probs = torch.softmax(self.model(weak), dim=-1)
            confidence, pseudo = probs.max(dim=-1)
        each = nn.functional.cross_entropy(self.model(strong), pseudo, reduction="none")
        return (each * (confidence > self.threshold)).mean()

    def train_one_epoch(self, labelled, unlabelled, device):
        self.model.train()
        total = 0.0
        for (x, y), (weak, strong) in zip(labelled, unlabelled):
            supervised = self.ce(self.model(x.to(device)), y.to(device))
            loss = supervised + self.unlabelled_loss(weak.to(device), strong.to(device))
            loss.backward()
            self.optim.step()  # expect: missing-zero-grad
            total += loss.item()
        return total

# ======== zip_two_loaders.right.py ========
import torch
from torch import nn, optim


class FixMatch:
    """Labelled and unlabelled batches side by side."""

    def __init__(self, model, threshold=0.95):
        self.model = model
        self.threshold = threshold
        self.optim = optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
        self.ce = nn.CrossEntropyLoss()

    def unlabelled_loss(self, weak, strong):
        with torch.no_grad():
            probs = torch.softmax(self.model(weak), dim=-1)
            confidence, pseudo = probs.max(dim=-1)
        each = nn.functional.cross_entropy(self.model(strong), pseudo, reduction="none")
        return (each * (confidence > self.threshold)).mean()

    def train_one_epoch(self, labelled, unlabelled, device):
        self.model.train()
        total = 0.0
        for (x, y), (weak, strong) in zip(labelled, unlabelled):
            supervised = self.ce(self.model(x.to(device)), y.to(device))
            loss = supervised + self.unlabelled_loss(weak.to(device), strong.to(device))
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            total += loss.item()
        return total
