# SPDX-License-Identifier: Apache-2.0
"""ResNet50 with DistributedDataParallel: over HCCL on Gaudi, over gloo anywhere else.

The model and its training follow the ResNet50 example of Gaudi's model references: SGD with momentum and weight decay,
label smoothing, a learning rate that warms up, and one process for each accelerator. The images are made up, so the
script needs no download. On a machine without Gaudi the script says so, and takes a model and steps as small as it can
carry: all the rest, such as the ranks, the checkpoints and what is reported, stays as it is.
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
BLOCKS = {"50": (3, 4, 6, 3), "14": (1, 1, 1, 1)}
# The most that processors without accelerators are asked for.
WITHOUT_GAUDI = {"epochs": 3, "steps": 2, "batch": 4, "size": 32, "width": 8}


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, images):
        return torch.relu(self.body(images) + self.skip(images))


def resnet(blocks: tuple[int, ...], width: int, classes: int) -> nn.Module:
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage and not block else 1
            layers.append(Bottleneck(inputs, width << stage, stride))
            inputs = 4 * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def accelerator():
    """The backend, the device, and what makes Gaudi carry out the steps that were collected."""
    try:
        import habana_frameworks.torch.core as gaudi
        import habana_frameworks.torch.distributed.hccl  # noqa: F401  # declares the backend
    except ImportError:
        return "gloo", torch.device("cpu"), lambda: None
    return "hccl", torch.device("hpu"), gaudi.mark_step


def batches(options, seed: int):
    """Images whose brightness gives away their class."""
    chance = torch.Generator().manual_seed(seed)
    for _ in range(options.steps):
        labels = torch.randint(0, options.classes, (options.batch,), generator=chance)
        noise = torch.randn(options.batch, 3, options.size, options.size, generator=chance)
        yield noise + labels.view(-1, 1, 1, 1).float(), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--blocks", choices=BLOCKS, default="50")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--warmup", type=int, default=1)
    options = parser.parse_args()
    backend, device, mark_step = accelerator()
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    if backend == "gloo":
        without_gaudi(options, rank)
    torch.manual_seed(7)
    model = resnet(BLOCKS[options.blocks], options.width, options.classes).to(device)
    checkpoint, done = CHECKPOINTS / "resnet.pt", torch.zeros(1, dtype=torch.int64, device=device)
    if rank == 0 and checkpoint.exists():
        kept = torch.load(checkpoint, map_location="cpu")
        model.load_state_dict(kept["model"])
        done.fill_(kept["epoch"])
    dist.broadcast(done, 0)
    # DDP gives every rank the weights that rank 0 has.
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4)
    for epoch in range(int(done) + 1, options.epochs + 1):
        for group in optimizer.param_groups:
            group["lr"] = options.lr * min(1.0, epoch / max(1, options.warmup))
        for images, labels in batches(options, epoch * size + rank):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device), label_smoothing=0.1)
            loss.backward()
            mark_step()
            optimizer.step()
            mark_step()
        mean = loss.detach()
        dist.all_reduce(mean)
        if rank == 0:
            report(epoch, mean.item() / size, size, backend)
            torch.save({"epoch": epoch, "model": model.module.state_dict()}, checkpoint)
    dist.destroy_process_group()


def without_gaudi(options, rank: int) -> None:
    """Keeps the options to what processors carry. Each rank has threads enough in one."""
    torch.set_num_threads(1)
    options.blocks = "14"
    for name, most in WITHOUT_GAUDI.items():
        setattr(options, name, min(getattr(options, name), most))
    if rank == 0:
        taken = ", ".join(f"{name} {most}" for name, most in WITHOUT_GAUDI.items())
        print(f"no Gaudi here: over gloo, ResNet14 in place of ResNet50, at most {taken}", flush=True)


def report(epoch: int, loss: float, ranks: int, backend: str) -> None:
    step = {"step": epoch, "loss": loss}
    print(f"epoch {epoch} loss {loss:.5f}", flush=True)
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps(step) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({**step, "ranks": ranks, "backend": backend}) + "\n")


if __name__ == "__main__":
    main()
