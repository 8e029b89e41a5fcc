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
