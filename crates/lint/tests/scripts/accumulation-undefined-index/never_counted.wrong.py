"""Accumulates eight pairs; the index was lost when the loops were merged with zip."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


def train(student, teacher, clean: DataLoader, noisy: DataLoader, k: int = 8):
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-4)
    criterion = nn.MSELoss()
    teacher.eval()
    student.train()
    for epoch in range(10):
        optimizer.zero_grad()
        for (a, _), (b, _) in zip(clean, noisy):
            with torch.no_grad():
                target = teacher(a)
            loss = criterion(student(b), target) / k
            loss.backward()
            if i % k == k - 1:  # expect: accumulation-undefined-index
                optimizer.step()
                optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()
        torch.save(student.state_dict(), f"student-{epoch}.pt")
    return student
