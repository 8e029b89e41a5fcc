"""One process for each of four cards, and one worker for each of them."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import CIFAR10
from torchvision.transforms import ToTensor

WORLD = 4


def worker(rank):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=WORLD)
    torch.cuda.set_device(rank)
    data = CIFAR10("data", train=True, transform=ToTensor())
    sampler = DistributedSampler(data, WORLD, rank)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=1)
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).cuda(rank), [rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image.cuda(rank)), label.cuda(rank))
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, nprocs=WORLD)
