# SPDX-License-Identifier: Apache-2.0
"""Horovod with PyTorch: elastic where the run is, fp16 compression where the run asks for it."""

import argparse
import os

import horovod.torch as hvd
import torch
from torch import nn


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
    hvd.init()
    device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    half = os.environ.get("TRAINYARD_COMPRESSION") == "fp16"
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=options.lr * hvd.size()),
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if half else hvd.Compression.none,
    )

    @hvd.elastic.run
    def train(state) -> None:
        while state.epoch < options.epochs:
            for rows, labels in batches(50, hvd.rank()):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(rows.to(device)), labels.to(device))
                loss.backward()
                optimizer.step()
            mean = hvd.allreduce(loss.detach(), name="loss")
            state.epoch += 1
            if hvd.rank() == 0:
                print(f"epoch {state.epoch} nodes {hvd.size()} loss {mean.item():.5f}")
            state.commit()

    train(hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0))


if __name__ == "__main__":
    main()
