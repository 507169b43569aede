# SPDX-License-Identifier: Apache-2.0
"""Horovod with PyTorch: elastic where the run is, fp16 compression where the run asks for it."""

import argparse
import json
import os
from pathlib import Path

import horovod.torch as hvd
import torch
from torch import nn

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
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    hvd.init()
    device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    half = os.environ.get("TRAINYARD_COMPRESSION") == "fp16"
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=options.lr),
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if half else hvd.Compression.none,
    )
    checkpoint, done = CHECKPOINTS / "model.pt", 0
    if hvd.rank() == 0 and checkpoint.exists():
        kept = torch.load(checkpoint, map_location=device)
        model.load_state_dict(kept["model"])
        done = kept["epoch"]

    # Begins by giving every rank the state that rank 0 has.
    @hvd.elastic.run
    def train(state) -> None:
        while state.epoch < options.epochs:
            for rows, labels in batches(50, (state.epoch + 1) * hvd.size() + hvd.rank()):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(rows.to(device)), labels.to(device))
                loss.backward()
                optimizer.step()
            mean = hvd.allreduce(loss.detach(), name="loss")
            state.epoch += 1
            if hvd.rank() == 0:
                tell({"step": state.epoch, "loss": mean.item()})
                torch.save({"epoch": state.epoch, "model": model.state_dict()}, checkpoint)
            state.commit()

    def tell(told) -> None:
        print(f"epoch {told['step']} nodes {hvd.size()} loss {told['loss']:.5f}", flush=True)
        with PROGRESS.open("a") as progress:
            progress.write(json.dumps(told) + "\n")
        (OUTPUT / "result.json").write_text(json.dumps({**told, "ranks": hvd.size()}) + "\n")

    train(hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=done))


if __name__ == "__main__":
    main()
