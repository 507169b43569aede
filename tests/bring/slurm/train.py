# SPDX-License-Identifier: Apache-2.0
"""Trains a line with DistributedDataParallel, and says what it saw."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1)
arguments = parser.parse_args()
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _step in range(arguments.steps):
    optimizer.zero_grad()
    loss = model(torch.ones(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
seen = [None] * dist.get_world_size()
dist.all_gather_object(seen, (os.environ["SLURM_NODEID"], os.environ["SLURM_NNODES"], os.environ["LOCAL_RANK"]))
# Two processes on each of two nodes, wherever they run. torchrun numbers the nodes in an order of its own.
assert sorted(seen) == [("0", "2", "0"), ("0", "2", "1"), ("1", "2", "0"), ("1", "2", "1")], seen
dist.destroy_process_group()
