import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.full((1000,), float(index)), index


def main():
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1])
    model = torch.nn.Linear(1000, 1)
    for inputs, numbers in loader:
        model(inputs).sum().backward()
        print(numbers.tolist(), flush=True)


if __name__ == "__main__":
    main()
    # PyTorch does not wait for these; Python warns of a leaked semaphore if it ends while one removes it.
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join()
