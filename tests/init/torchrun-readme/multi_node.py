# SPDX-License-Identifier: Apache-2.0
"""A small model on random data, each rank with a share of it."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(epochs: int, every: int) -> None:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    model = DistributedDataParallel(torch.nn.Linear(20, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        inputs = torch.rand(32, 20, device=device)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % every == 0 and dist.get_rank() == 0:
            torch.save(model.module.state_dict(), "snapshot.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("epochs", type=int)
    parser.add_argument("every", type=int)
    parsed = parser.parse_args()
    main(parsed.epochs, parsed.every)
