# Cases of log-unguarded; crates/lint/tests/support/cases.rs describes the format.

# ======== focal_loss.wrong.py ========
import torch
from torch import nn


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, target):
        probs = torch.softmax(logits, dim=1)
        picked = probs.gather(1, target.unsqueeze(1)).squeeze(1)
        return (-((1 - picked) ** self.gamma) * torch.log(picked)).mean()  # expect: log-unguarded


def train_epoch(model, loader, optimizer, device):
    criterion = FocalLoss(gamma=1.5)
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)

# ======== focal_loss.right.py ========
import torch
from torch import nn


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, target):
        log_probs = torch.log_softmax(logits, dim=1)
        log_picked = log_probs.gather(1, target.unsqueeze(1)).squeeze(1)
        return (-((1 - log_picked.exp()) ** self.gamma) * log_picked).mean()


def train_epoch(model, loader, optimizer, device):
    criterion = FocalLoss(gamma=1.5)
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)

# ======== gan_sigmoid.wrong.py ========
import torch
import torch.nn as nn


def nets(latent=100, pixels=784):
    generator = nn.Sequential(nn.Linear(latent, 256), nn.ReLU(), nn.Linear(256, pixels), nn.Tanh())
    critic = nn.Sequential(nn.Linear(pixels, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1), nn.Sigmoid())
    return generator, critic


def train(loader, epochs=10, latent=100):
    generator, critic = nets(latent)
    g_opt = torch.optim.Adam(generator.parameters(), lr=2e-4)
    d_opt = torch.optim.Adam(critic.parameters(), lr=2e-4)
    bce = nn.BCELoss()
    for epoch in range(epochs):
        for real, _ in loader:
            real = real.flatten(1)
            fake = generator(torch.randn(real.size(0), latent))
            d_opt.zero_grad()
            right, wrong = critic(real), critic(fake.detach())
            d_loss = bce(right, torch.ones_like(right)) + bce(wrong, torch.zeros_like(wrong))
            d_loss.backward()
            d_opt.step()

            g_opt.zero_grad()
            g_loss = -torch.log(critic(fake)).mean()  # expect: log-unguarded
            g_loss.backward()
            g_opt.step()
        print(epoch, d_loss.item(), g_loss.item())

# ======== gan_sigmoid.right.py ========
import torch
import torch.nn as nn


def nets(latent=100, pixels=784):
    generator = nn.Sequential(nn.Linear(latent, 256), nn.ReLU(), nn.Linear(256, pixels), nn.Tanh())
    critic = nn.Sequential(nn.Linear(pixels, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1), nn.Sigmoid())
    return generator, critic


def train(loader, epochs=10, latent=100):
    generator, critic = nets(latent)
    g_opt = torch.optim.Adam(generator.parameters(), lr=2e-4)
    d_opt = torch.optim.Adam(critic.parameters(), lr=2e-4)
    bce = nn.BCELoss()
    for epoch in range(epochs):
        for real, _ in loader:
            real = real.flatten(1)
            fake = generator(torch.randn(real.size(0), latent))
            d_opt.zero_grad()
            right, wrong = critic(real), critic(fake.detach())
            d_loss = bce(right, torch.ones_like(right)) + bce(wrong, torch.zeros_like(wrong))
            d_loss.backward()
            d_opt.step()

            g_opt.zero_grad()
            g_loss = -torch.log(critic(fake) + 1e-7).mean()
            g_loss.backward()
            g_opt.step()
        print(epoch, d_loss.item(), g_loss.item())

# ======== info_nce.wrong.py ========
import torch
import torch.nn.functional as F


class InfoNCE(torch.nn.Module):
    def __init__(self, temperature=0.05):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
        similarity = a @ b.t() / self.temperature
        positive = similarity.diagonal()
        return (torch.log(torch.exp(similarity).sum(dim=1)) - positive).mean()  # expect: log-unguarded


def train(encoder, loader, device, epochs=100):
    criterion = InfoNCE()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-4)
    encoder.to(device).train()
    for epoch in range(epochs):
        total = 0.0
        for first, second in loader:
            optimizer.zero_grad()
            loss = criterion(encoder(first.to(device)), encoder(second.to(device)))
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))

# ======== info_nce.right.py ========
import torch
import torch.nn.functional as F


class InfoNCE(torch.nn.Module):
    def __init__(self, temperature=0.05):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
        similarity = a @ b.t() / self.temperature
        positive = similarity.diagonal()
        return (torch.logsumexp(similarity, dim=1) - positive).mean()


def train(encoder, loader, device, epochs=100):
    criterion = InfoNCE()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-4)
    encoder.to(device).train()
    for epoch in range(epochs):
        total = 0.0
        for first, second in loader:
            optimizer.zero_grad()
            loss = criterion(encoder(first.to(device)), encoder(second.to(device)))
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))

# ======== keras_custom_loss.wrong.py ========
import tensorflow as tf
from tensorflow import keras


class WeightedCrossentropy(keras.losses.Loss):
    def __init__(self, weights, name="weighted_crossentropy"):
        super().__init__(name=name)
        self.weights = tf.constant(weights, dtype=tf.float32)

    def call(self, y_true, y_pred):
        probs = tf.nn.softmax(y_pred, axis=-1)
        each = -tf.reduce_sum(self.weights * y_true * tf.math.log(probs), axis=-1)  # expect: log-unguarded
        return tf.reduce_mean(each)


def build(tokens, classes):
    return keras.Sequential([
        keras.layers.Embedding(tokens, 64),
        keras.layers.Bidirectional(keras.layers.LSTM(64)),
        keras.layers.Dense(classes),
    ])


def main(train, validation):
    model = build(20_000, 4)
    model.compile("adam", loss=WeightedCrossentropy([1.0, 4.0, 4.0, 9.0]), metrics=["accuracy"])
    model.fit(train, validation_data=validation, epochs=4)
    return model

# ======== keras_custom_loss.right.py ========
import tensorflow as tf
from tensorflow import keras


class WeightedCrossentropy(keras.losses.Loss):
    def __init__(self, weights, name="weighted_crossentropy"):
        super().__init__(name=name)
        self.weights = tf.constant(weights, dtype=tf.float32)

    def call(self, y_true, y_pred):
        log_probs = tf.nn.log_softmax(y_pred, axis=-1)
        each = -tf.reduce_sum(self.weights * y_true * log_probs, axis=-1)
        return tf.reduce_mean(each)


def build(tokens, classes):
    return keras.Sequential([
        keras.layers.Embedding(tokens, 64),
        keras.layers.Bidirectional(keras.layers.LSTM(64)),
        keras.layers.Dense(classes),
    ])


def main(train, validation):
    model = build(20_000, 4)
    model.compile("adam", loss=WeightedCrossentropy([1.0, 4.0, 4.0, 9.0]), metrics=["accuracy"])
    model.fit(train, validation_data=validation, epochs=4)
    return model

# ======== mutual_information.wrong.py ========
import torch
import torch.nn.functional as F


class Clusterer(torch.nn.Module):
    def __init__(self, inputs, clusters):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(inputs, 256), torch.nn.ReLU(), torch.nn.Linear(256, clusters)
        )

    def forward(self, x):
        return F.softmax(self.net(x), dim=1)


def entropy(p):
    return -(p * torch.log(p)).sum(dim=-1)  # expect: log-unguarded


def objective(p):
    return entropy(p).mean() - 4.0 * entropy(p.mean(dim=0))


def train(loader, inputs, clusters, epochs=50):
    model = Clusterer(inputs, clusters)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for x, _ in loader:
            optimizer.zero_grad()
            loss = objective(model(x))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model

# ======== mutual_information.right.py ========
import torch
import torch.nn.functional as F


class Clusterer(torch.nn.Module):
    def __init__(self, inputs, clusters):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(inputs, 256), torch.nn.ReLU(), torch.nn.Linear(256, clusters)
        )

    def forward(self, x):
        return F.softmax(self.net(x), dim=1)


def entropy(p):
    return -(p * torch.log(p + 1e-9)).sum(dim=-1)


def objective(p):
    return entropy(p).mean() - 4.0 * entropy(p.mean(dim=0))


def train(loader, inputs, clusters, epochs=50):
    model = Clusterer(inputs, clusters)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for x, _ in loader:
            optimizer.zero_grad()
            loss = objective(model(x))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model

# ======== policy_entropy.wrong.py ========
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, inputs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, actions))

    def forward(self, state):
        return nn.functional.softmax(self.net(state), dim=-1)


def update(policy, optimizer, states, actions, advantages, beta=0.01):
    probs = policy(states)
    chosen = probs.gather(1, actions.unsqueeze(1)).squeeze(1)
    log_chosen = chosen.log()  # expect: log-unguarded
    loss = -(log_chosen * advantages).mean() - beta * (1 - probs.pow(2).sum(dim=1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(collect, inputs, actions, rounds=1000):
    policy = Policy(inputs, actions)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for number in range(rounds):
        value = update(policy, optimizer, *collect(policy))
        if number % 50 == 0:
            print(number, value)

# ======== policy_entropy.right.py ========
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, inputs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, actions))

    def forward(self, state):
        return nn.functional.softmax(self.net(state), dim=-1)


def update(policy, optimizer, states, actions, advantages, beta=0.01):
    probs = policy(states)
    chosen = probs.gather(1, actions.unsqueeze(1)).squeeze(1)
    log_chosen = chosen.clamp(min=1e-8).log()
    loss = -(log_chosen * advantages).mean() - beta * (1 - probs.pow(2).sum(dim=1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(collect, inputs, actions, rounds=1000):
    policy = Policy(inputs, actions)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for number in range(rounds):
        value = update(policy, optimizer, *collect(policy))
        if number % 50 == 0:
            print(number, value)
