# SPDX-License-Identifier: Apache-2.0
"""Images of CIFAR-10's size, a network for them, and what a run tells of its epochs.

The images are made up, so nothing is downloaded. All of it runs under Python 3.6 and PyTorch 1.2, too.
"""

import json
import os
from pathlib import Path

import torch
from torch import nn

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINT = Path(os.environ.get("TRAINYARD_CHECKPOINTS", ".")) / "cifar10.pt"
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))
CLASSES = 10


def add_options(parser) -> None:
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)


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


def restore(model: nn.Module, device) -> int:
    """Takes up the checkpoint, if there is one; how many epochs it has seen."""
    if not CHECKPOINT.exists():
        return 0
    kept = torch.load(str(CHECKPOINT), map_location=device)
    model.load_state_dict(kept["model"])
    return kept["epoch"]


def keep(model: nn.Module, epoch: int, loss: float, **more) -> None:
    """Writes the checkpoint and the result of an epoch, and reports it. `more` goes into the result."""
    step = {"step": epoch, "loss": loss}
    print(f"epoch {epoch} loss {loss:.5f}", flush=True)
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps(step) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({**step, **more}) + "\n")
    torch.save({"epoch": epoch, "model": model.state_dict()}, str(CHECKPOINT))
