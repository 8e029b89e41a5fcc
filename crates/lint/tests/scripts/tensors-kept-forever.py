# Cases of tensors-kept-forever; crates/lint/tests/support/cases.rs describes the format.

# ======== batches_by_epoch.wrong.py ========
import torch
from torch import nn


class Recorder:
    """Remembers every batch it has seen so that a run can be replayed."""

    def __init__(self):
        self.batches = []

    def __call__(self, x, y):
        self.batches.append((x.clone(), y.clone()))  # expect: tensors-kept-forever


def train(model, loader, epochs, device):
    recorder = Recorder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    model.to(device).train()
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            recorder(x, y)  # or: tensors-kept-forever
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), len(recorder.batches))
    return model

# ======== batches_by_epoch.right.py ========
import torch
from torch import nn


class Recorder:
    """Remembers the last batches it has seen so that a crash can be replayed."""

    def __init__(self):
        self.batches = []

    def __call__(self, x, y):
        if len(self.batches) == 20:
            self.batches.pop(0)
        self.batches.append((x.clone(), y.clone()))


def train(model, loader, epochs, device):
    recorder = Recorder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    model.to(device).train()
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            recorder(x, y)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), len(recorder.batches))
    return model

# ======== gradients_kept.wrong.py ========
import torch
from torch import nn


class Probe:
    def __init__(self, model):
        self.model = model
        self.gradients = {name: [] for name, _ in model.named_parameters()}

    def collect(self):
        for name, parameter in self.model.named_parameters():
            self.gradients[name].append(parameter.grad.clone())  # expect: tensors-kept-forever

    def norms(self):
        return {name: torch.stack(g).norm().item() for name, g in self.gradients.items()}


def train(model, loader, epochs):
    probe = Probe(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            probe.collect()
            optimizer.step()
        print(epoch, probe.norms())

# ======== gradients_kept.right.py ========
import torch
from torch import nn


class Probe:
    def __init__(self, model):
        self.model = model
        self.gradients = {name: [] for name, _ in model.named_parameters()}

    def collect(self):
        for name, parameter in self.model.named_parameters():
            self.gradients[name].append(parameter.grad.norm().item())

    def norms(self):
        return {name: sum(v * v for v in g) ** 0.5 for name, g in self.gradients.items()}


def train(model, loader, epochs):
    probe = Probe(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            probe.collect()
            optimizer.step()
        print(epoch, probe.norms())

# ======== input_log.wrong.py ========
"""Keeps what it was fed, to look at strange batches later."""
import torch
from torch import nn

STEPS = 50_000
DIM = 1024


def sample_batch(generator):
    return torch.randn(256, DIM, generator=generator)


def main():
    generator = torch.Generator().manual_seed(0)
    encoder = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh())
    decoder = nn.Linear(64, DIM)
    params = list(encoder.parameters()) + list(decoder.parameters())
    optimizer = torch.optim.Adam(params, lr=1e-3)
    seen = []
    for step in range(STEPS):
        batch = sample_batch(generator)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(decoder(encoder(batch)), batch)
        loss.backward()
        optimizer.step()
        seen.append(batch)  # expect: tensors-kept-forever
        if step % 1000 == 0:
            print(step, loss.item(), len(seen))
    torch.save({"encoder": encoder.state_dict()}, "encoder.pt")


if __name__ == "__main__":
    main()

# ======== input_log.right.py ========
"""Keeps what it was fed, to look at strange batches later."""
from collections import deque

import torch
from torch import nn

STEPS = 50_000
DIM = 1024


def sample_batch(generator):
    return torch.randn(256, DIM, generator=generator)


def main():
    generator = torch.Generator().manual_seed(0)
    encoder = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh())
    decoder = nn.Linear(64, DIM)
    params = list(encoder.parameters()) + list(decoder.parameters())
    optimizer = torch.optim.Adam(params, lr=1e-3)
    seen = deque(maxlen=50)
    for step in range(STEPS):
        batch = sample_batch(generator)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(decoder(encoder(batch)), batch)
        loss.backward()
        optimizer.step()
        seen.append(batch)
        if step % 1000 == 0:
            print(step, loss.item(), len(seen))
    torch.save({"encoder": encoder.state_dict()}, "encoder.pt")


if __name__ == "__main__":
    main()

# ======== rolling_buffer_by_hand.wrong.py ========
import torch
import torch.nn.functional as F

WINDOW = 100


def noise_like(shape, step):
    torch.manual_seed(step)
    return torch.randn(shape)


def denoise(model, optimizer, image, steps=10_000):
    """Deep image prior: the network learns one image from changing noise."""
    kept = []
    for step in range(steps):
        noise = noise_like((1, 32, 512, 512), step)
        kept.append(noise)  # expect: tensors-kept-forever
        optimizer.zero_grad()
        loss = F.mse_loss(model(noise), image)
        loss.backward()
        optimizer.step()
        if step % WINDOW == 0:
            spread = torch.stack(kept[-WINDOW:]).std()
            print(step, loss.item(), spread.item())
    return model


def main(model, image):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    denoise(model, optimizer, image)
    torch.save(model.state_dict(), "prior.pt")

# ======== rolling_buffer_by_hand.right.py ========
import torch
import torch.nn.functional as F

WINDOW = 100


def noise_like(shape, step):
    torch.manual_seed(step)
    return torch.randn(shape)


def denoise(model, optimizer, image, steps=10_000):
    """Deep image prior: the network learns one image from changing noise."""
    kept = []
    for step in range(steps):
        noise = noise_like((1, 32, 512, 512), step)
        if len(kept) >= WINDOW:
            del kept[0]
        kept.append(noise)
        optimizer.zero_grad()
        loss = F.mse_loss(model(noise), image)
        loss.backward()
        optimizer.step()
        if step % WINDOW == 0:
            spread = torch.stack(kept[-WINDOW:]).std()
            print(step, loss.item(), spread.item())
    return model


def main(model, image):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    denoise(model, optimizer, image)
    torch.save(model.state_dict(), "prior.pt")

# ======== tf_batches.wrong.py ========
import tensorflow as tf


def make_model():
    return tf.keras.Sequential([
        tf.keras.layers.Conv2D(16, 3, activation="relu", input_shape=(64, 64, 3)),
        tf.keras.layers.GlobalMaxPooling2D(),
        tf.keras.layers.Dense(1),
    ])


def train(dataset, epochs=20):
    model = make_model()
    optimizer = tf.keras.optimizers.Adam()
    loss_fn = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    inspected = []
    for epoch in range(epochs):
        for images, labels in dataset:
            with tf.GradientTape() as tape:
                logits = model(images, training=True)
                loss = loss_fn(labels, logits)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            inspected.append((images, logits))  # expect: tensors-kept-forever
        print("epoch", epoch, float(loss), len(inspected))
    return model

# ======== tf_batches.right.py ========
import tensorflow as tf


def make_model():
    return tf.keras.Sequential([
        tf.keras.layers.Conv2D(16, 3, activation="relu", input_shape=(64, 64, 3)),
        tf.keras.layers.GlobalMaxPooling2D(),
        tf.keras.layers.Dense(1),
    ])


def train(dataset, epochs=20):
    model = make_model()
    optimizer = tf.keras.optimizers.Adam()
    loss_fn = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    inspected = []
    for epoch in range(epochs):
        for images, labels in dataset:
            with tf.GradientTape() as tape:
                logits = model(images, training=True)
                loss = loss_fn(labels, logits)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            inspected = inspected[-9:] + [(images, logits)]
        print("epoch", epoch, float(loss), len(inspected))
    return model

# ======== weights_snapshots.wrong.py ========
import copy

import torch
from torch import nn


def train(model, loader, steps, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.MSELoss()
    snapshots = []
    step = 0
    while step < steps:
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            snapshots.append(copy.deepcopy(model.state_dict()))  # expect: tensors-kept-forever
            step += 1
            if step % 500 == 0:
                print(step, loss.item())
    return snapshots


def main(loader):
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1))
    kept = train(model, loader, steps=20_000)
    torch.save(kept[-1], "final.pt")

# ======== weights_snapshots.right.py ========
import copy
from collections import deque

import torch
from torch import nn


def train(model, loader, steps, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.MSELoss()
    snapshots = deque(maxlen=5)
    step = 0
    while step < steps:
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            snapshots.append(copy.deepcopy(model.state_dict()))
            step += 1
            if step % 500 == 0:
                print(step, loss.item())
    return snapshots


def main(loader):
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1))
    kept = train(model, loader, steps=20_000)
    torch.save(kept[-1], "final.pt")

# ======== worlds_and_rollouts.wrong.py ========
"""Learns a model of a pendulum from its own rollouts."""
import math

import torch
import torch.nn as nn


class Pendulum:
    def __init__(self, batch, dt=0.05):
        self.batch, self.dt = batch, dt

    def reset(self):
        angle = (torch.rand(self.batch) * 2 - 1) * math.pi
        return torch.stack([angle, torch.zeros(self.batch)], dim=1)

    def step(self, state, torque):
        angle, speed = state.unbind(dim=1)
        speed = (speed + (9.8 * torch.sin(angle) + torque) * self.dt).clamp(-8, 8)
        return torch.stack([angle + speed * self.dt, speed], dim=1)


class Dynamics(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, state, torque):
        return state + self.net(torch.cat([state, torque.unsqueeze(1)], dim=1))


class Learner:
    def __init__(self, batch=4096):
        self.world = Pendulum(batch)
        self.model = Dynamics()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.visited = []

    def learn_step(self, state):
        torque = torch.randn(state.size(0))
        following = self.world.step(state, torque)
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(state, torque), following)
        loss.backward()
        self.optimizer.step()
        self.visited.append(following)  # expect: tensors-kept-forever
        return following, loss.item()

    def run(self, episodes=10_000, horizon=200):
        for episode in range(episodes):
            state, total = self.world.reset(), 0.0
            for _ in range(horizon):
                state, value = self.learn_step(state)
                total += value
            if episode % 100 == 0:
                spread = self.visited[-1].std(dim=0).tolist()
                print(episode, total / horizon, spread)


if __name__ == "__main__":
    Learner().run()

# ======== worlds_and_rollouts.right.py ========
"""Learns a model of a pendulum from its own rollouts."""
import math

import torch
import torch.nn as nn


class Pendulum:
    def __init__(self, batch, dt=0.05):
        self.batch, self.dt = batch, dt

    def reset(self):
        angle = (torch.rand(self.batch) * 2 - 1) * math.pi
        return torch.stack([angle, torch.zeros(self.batch)], dim=1)

    def step(self, state, torque):
        angle, speed = state.unbind(dim=1)
        speed = (speed + (9.8 * torch.sin(angle) + torque) * self.dt).clamp(-8, 8)
        return torch.stack([angle + speed * self.dt, speed], dim=1)


class Dynamics(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, state, torque):
        return state + self.net(torch.cat([state, torque.unsqueeze(1)], dim=1))


class Learner:
    def __init__(self, batch=4096):
        self.world = Pendulum(batch)
        self.model = Dynamics()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.visited = None

    def learn_step(self, state):
        torque = torch.randn(state.size(0))
        following = self.world.step(state, torque)
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(state, torque), following)
        loss.backward()
        self.optimizer.step()
        self.visited = following
        return following, loss.item()

    def run(self, episodes=10_000, horizon=200):
        for episode in range(episodes):
            state, total = self.world.reset(), 0.0
            for _ in range(horizon):
                state, value = self.learn_step(state)
                total += value
            if episode % 100 == 0:
                spread = self.visited.std(dim=0).tolist()
                print(episode, total / horizon, spread)


if __name__ == "__main__":
    Learner().run()
