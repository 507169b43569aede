# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel for torchrun: it begins anew whenever the nodes change, and goes on from its snapshot."""

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


def batches(count: int, seed: int):
    chance = torch.Generator().manual_seed(seed)
    for _ in range(count):
        rows = torch.rand(64, 32, generator=chance)
        yield rows, (rows.sum(1) > 16).long()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    # torchrun sets what this reads: rank, world size, and where to meet.
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    snapshot, done = CHECKPOINTS / "snapshot.pt", torch.zeros(1, dtype=torch.int64)
    # Rank 0 knows how far training is; the others may be new.
    if rank == 0 and snapshot.exists():
        kept = torch.load(snapshot)
        model.load_state_dict(kept["model"])
        done.fill_(kept["epoch"])
    dist.broadcast(done, 0)
    print(f"rank {rank} of {size} begins after epoch {int(done)}", flush=True)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for epoch in range(int(done) + 1, options.epochs + 1):
        for rows, labels in batches(options.batches, epoch * size + rank):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(rows), labels)
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        if rank == 0:
            told = {"step": epoch, "loss": mean.item() / size}
            print(f"epoch {epoch} loss {told['loss']:.5f} world {size}", flush=True)
            torch.save({"epoch": epoch, "model": model.module.state_dict()}, snapshot.with_suffix(".tmp"))
            snapshot.with_suffix(".tmp").replace(snapshot)
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps(told) + "\n")
            (OUTPUT / "result.json").write_text(json.dumps({**told, "ranks": size}) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
