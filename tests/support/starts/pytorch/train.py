# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel."""

import torch
import torch.distributed as dist
from steps import COLUMNS, RATE, Steps, batch, here
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    steps = Steps()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    here(rank, world)
    torch.set_default_dtype(torch.float64)
    layer = torch.nn.Linear(COLUMNS, 1, bias=False)
    layer.weight.data = torch.tensor([steps.weights])
    model = DistributedDataParallel(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for step in steps.left():
        rows, sums = map(torch.tensor, batch(step, rank))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(rows), sums)
        loss.backward()
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        steps.after(step, total.item() / world, layer.weight[0].tolist(), rank, world=world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
