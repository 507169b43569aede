# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training on Trainium: over xla there, over gloo on processors anywhere else.

Each process trains on one NeuronCore. Gradients are averaged by the process group, as Neuron's documents do it for
training with torchrun, and `mark_step` ends a step: what was collected until then is compiled and carried out. All
batches have the same shape, because each new shape is compiled anew.
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


def accelerator():
    """The backend, the device, and what makes the device carry out the steps that were collected."""
    try:
        import torch_xla.core.xla_model as xm
        import torch_xla.distributed.xla_backend  # noqa: F401  # declares the backend
    except ImportError:
        return "gloo", torch.device("cpu"), lambda: None
    return "xla", xm.xla_device(), xm.mark_step


def batches(count: int, seed: int):
    chance = torch.Generator().manual_seed(seed)
    for _ in range(count):
        rows = torch.rand(64, 32, generator=chance)
        yield rows, (rows.sum(1) > 16).long()


def summed(values: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(values)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    backend, device, mark_step = accelerator()
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0 and backend == "gloo":
        print("no Trainium here: over gloo, on processors", flush=True)
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    checkpoint, done = CHECKPOINTS / "model.pt", torch.zeros(1)
    if rank == 0 and checkpoint.exists():
        kept = torch.load(checkpoint, map_location="cpu")
        model.load_state_dict(kept["model"])
        done.fill_(kept["epoch"])
    model = model.to(device)
    first = int(summed(done.to(device)).item()) + 1
    # All ranks begin with what rank 0 has.
    for parameter in model.parameters():
        parameter.data = summed(parameter.data if rank == 0 else torch.zeros_like(parameter))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for epoch in range(first, options.epochs + 1):
        for rows, labels in batches(50, epoch * size + rank):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(rows.to(device)), labels.to(device))
            loss.backward()
            for parameter in model.parameters():
                parameter.grad = summed(parameter.grad) / size
            optimizer.step()
            mark_step()
        mean = summed(loss.detach()).item() / size
        if rank == 0:
            report(epoch, mean, size, backend)
            weights = {name: value.cpu() for name, value in model.state_dict().items()}
            torch.save({"epoch": epoch, "model": weights}, checkpoint)
    dist.destroy_process_group()


def report(epoch: int, loss: float, ranks: int, backend: str) -> None:
    step = {"step": epoch, "loss": loss}
    print(f"epoch {epoch} loss {loss:.5f}", flush=True)
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps(step) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({**step, "ranks": ranks, "backend": backend}) + "\n")


if __name__ == "__main__":
    main()
