# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 with DistributedDataParallel over gloo or NCCL, in mixed precision by Apex if asked for.

Rank, size and the address of the others come from the environment. A machine that lacks GPUs or Apex does without, and
the script says so.
"""

import argparse
import os

import cifar10
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def find_amp(wanted: bool, has_gpus: bool, rank: int):
    """Apex's mixed precision, or None. It needs GPUs."""
    if not wanted:
        return None
    try:
        from apex import amp
    except ImportError:
        amp = None
    if amp is None or not has_gpus:
        if rank == 0:
            missing = "GPU" if amp else "Apex"
            print(f"no {missing} here: trains in 32 bits", flush=True)
        return None
    return amp


def join(backend: str) -> torch.device:
    """Joins the others; the device that this rank trains on."""
    gpus = torch.cuda.device_count()
    dist.init_process_group(backend if gpus else "gloo", init_method="env://")
    if not gpus:
        if dist.get_rank() == 0:
            print("no GPU here: trains on processors, over gloo", flush=True)
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", dist.get_rank())) % gpus)
    torch.cuda.set_device(device)
    return device


def train(options, device) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = cifar10.network().to(device)
    done = torch.full((1,), cifar10.restore(model, device) if rank == 0 else 0, dtype=torch.int64, device=device)
    dist.broadcast(done, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    amp = find_amp(options.mixed, device.type == "cuda", rank)
    if amp is not None:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    # DDP gives every rank the weights that rank 0 has.
    parallel = DistributedDataParallel(model, device_ids=None if device.index is None else [device.index])
    for epoch in range(int(done) + 1, options.epochs + 1):
        for images, labels in cifar10.batches(options.batches, options.batch, epoch * size + rank):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(images.to(device)), labels.to(device))
            if amp is None:
                loss.backward()
            else:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        if rank == 0:
            cifar10.keep(model, epoch, mean.item() / size, ranks=size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo")
    parser.add_argument("--mixed", action="store_true", help="mixed precision, by Apex")
    cifar10.add_options(parser)
    options = parser.parse_args()
    train(options, join(options.backend))
    # Rank 0 still writes: whoever closed its connections now could end it.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
