# SPDX-License-Identifier: Apache-2.0
"""PyTorch DistributedDataParallel: rank, size and the address of the others come from the environment."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def batches(count: int, rank: int):
    chance = torch.Generator().manual_seed(rank)
    for _ in range(count):
        rows = torch.rand(256, 32, generator=chance)
        yield rows, (rows.sum(1) > 16).long()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()
    gpus = torch.cuda.device_count()
    dist.init_process_group("nccl" if gpus else "gloo")
    rank = dist.get_rank()
    device = torch.device("cuda", rank % gpus) if gpus else torch.device("cpu")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for epoch in range(1, options.epochs + 1):
        for rows, labels in batches(50, rank):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(rows.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch} loss {mean.item() / dist.get_world_size():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
