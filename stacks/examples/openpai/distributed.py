# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel as OpenPAI's examples have it: the address and the port of the first worker, and ranks that
come from PAI_TASK_INDEX. Nothing in it knows trainyard's variables of ranks and addresses.

`--mixed` trains in mixed precision by Apex, where there is one; with a folder of data its images come from there.
"""

import argparse
import json
import os
from importlib import import_module
from pathlib import Path

import digits
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", help="a folder of images, which every task sees")
    parser.add_argument("-n", "--nodes", type=int, default=1)
    parser.add_argument("-g", "--gpus", type=int, default=1, help="processes of each task")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--dist-backend", default="nccl")
    parser.add_argument("--mixed", action="store_true")
    options = parser.parse_args()
    options.size = options.nodes * options.gpus
    os.environ["MASTER_ADDR"] = os.environ["PAI_HOST_IP_worker_0"]  # noqa: SIM112 - OpenPAI writes it so
    os.environ["MASTER_PORT"] = os.environ["PAI_worker_0_SynPort_PORT"]  # noqa: SIM112
    if options.data and os.environ["PAI_TASK_INDEX"] == "0":
        write_images(Path(options.data))
    multiprocessing.spawn(train, nprocs=options.gpus, args=(options,))


def write_images(folder: Path) -> None:
    """Those that are not there yet: they are made up."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(4):
        torch.save(digits.batch(number), str(folder / f"{number}.pt"))


def batch(options, number: int):
    return torch.load(str(Path(options.data) / f"{number % 4}.pt")) if options.data else digits.batch(number)


def mixed_precision():
    """Apex's, or None."""
    try:
        return import_module("apex.amp") if torch.cuda.is_available() else None
    except ImportError:
        return None


def train(gpu: int, options) -> None:
    rank = int(os.environ["PAI_TASK_INDEX"]) * options.gpus + gpu
    dist.init_process_group(backend=options.dist_backend, init_method="env://", world_size=options.size, rank=rank)
    # The first rank has written the images by now.
    dist.barrier()
    device = digits.device_of(gpu)
    model = digits.network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    amp = mixed_precision() if options.mixed else None
    if options.mixed and amp is None and rank == 0:
        print("no Apex or no GPU here: trains in 32 bits", flush=True)
    if amp is not None:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    model = DistributedDataParallel(model)
    for epoch in range(options.epochs):
        images, labels = batch(options, epoch * options.size + rank)
        loss = digits.step(model, optimizer, images.to(device), labels.to(device))
        if rank == 0:
            digits.tell(epoch + 1, loss)
    ranks = torch.ones(1, device=device)
    dist.all_reduce(ranks)
    if rank == 0:
        digits.keep(json.dumps({"ranks": int(ranks)}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
