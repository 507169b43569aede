# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 with DistributedDataParallel over gloo or NCCL, in mixed precision by Apex if asked for.

Rank, size and the address of the others come from the environment. Images of CIFAR-10's size are made up, so the script
needs no download. It runs under Python 3.6 and PyTorch 1.2, too. A machine that lacks GPUs or Apex does without, and
the script says so.
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))
CLASSES = 10


def batches(count: int, size: int, seed: int):
    """Images whose brightness gives away their class."""
    chance = torch.Generator()
    chance.manual_seed(seed)
    for _ in range(count):
        labels = torch.randint(0, CLASSES, (size,), generator=chance)
        images = torch.randn(size, 3, 32, 32, generator=chance)
        yield images + labels.view(-1, 1, 1, 1).float(), labels


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 5 * 5, CLASSES),
    )  # fmt: skip


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo")
    parser.add_argument("--mixed", action="store_true", help="mixed precision, by Apex")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    options = parser.parse_args()
    gpus = torch.cuda.device_count()
    dist.init_process_group(options.backend if gpus else "gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0 and not gpus:
        print("no GPU here: trains on processors, over gloo", flush=True)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % gpus) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    torch.manual_seed(7)
    model = network().to(device)
    checkpoint, done = CHECKPOINTS / "cifar10.pt", torch.zeros(1, dtype=torch.int64, device=device)
    if rank == 0 and checkpoint.exists():
        kept = torch.load(str(checkpoint), map_location=device)
        model.load_state_dict(kept["model"])
        done.fill_(kept["epoch"])
    dist.broadcast(done, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    amp = find_amp(options.mixed, gpus > 0, rank)
    if amp is not None:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    # DDP gives every rank the weights that rank 0 has.
    parallel = DistributedDataParallel(model, device_ids=[device.index] if gpus else None)
    for epoch in range(int(done) + 1, options.epochs + 1):
        for images, labels in batches(options.batches, options.batch, epoch * size + rank):
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
            report(epoch, mean.item() / size, size)
            torch.save({"epoch": epoch, "model": model.state_dict()}, str(checkpoint))
    dist.destroy_process_group()


def report(epoch: int, loss: float, ranks: int) -> None:
    step = {"step": epoch, "loss": loss}
    print(f"epoch {epoch} loss {loss:.5f}", flush=True)
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps(step) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({**step, "ranks": ranks}) + "\n")


if __name__ == "__main__":
    main()
