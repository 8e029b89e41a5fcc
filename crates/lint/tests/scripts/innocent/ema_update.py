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
