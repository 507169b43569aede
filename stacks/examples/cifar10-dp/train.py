# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 with DataParallel: one process, all accelerators of one node.

Images of CIFAR-10's size are made up, so the script needs no download. It runs under Python 3.6 and PyTorch 1.2, too.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from torch import nn

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    options = parser.parse_args()
    gpus = torch.cuda.device_count()
    device = torch.device("cuda" if gpus else "cpu")
    how = "each batch is split among them" if gpus else "the processor trains"
    print(f"{gpus} GPUs: {how}", flush=True)
    torch.manual_seed(7)
    model = network().to(device)
    checkpoint, done = CHECKPOINTS / "cifar10.pt", 0
    if checkpoint.exists():
        kept = torch.load(str(checkpoint), map_location=device)
        model.load_state_dict(kept["model"])
        done = kept["epoch"]
    # Without GPUs it passes each batch on to the model as it is.
    parallel = nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    for epoch in range(done + 1, options.epochs + 1):
        for images, labels in batches(options.batches, options.batch, epoch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
        report(epoch, loss.item(), gpus)
        torch.save({"epoch": epoch, "model": model.state_dict()}, str(checkpoint))


def report(epoch: int, loss: float, gpus: int) -> None:
    step = {"step": epoch, "loss": loss}
    print(f"epoch {epoch} loss {loss:.5f}", flush=True)
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps(step) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({**step, "gpus": gpus}) + "\n")


if __name__ == "__main__":
    main()
