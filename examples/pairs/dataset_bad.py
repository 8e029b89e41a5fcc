"""PyTorch: all samples are read into a list before the first step.

    antifreeze run --budget 1GB -- python dataset_bad.py
"""

import torch


def sample(number):
    generator = torch.Generator().manual_seed(number)
    return torch.rand(3, 224, 224, generator=generator)


samples = []
for number in range(20_000):
    samples.append(sample(number))
print("done", len(samples))
