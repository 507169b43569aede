# SPDX-License-Identifier: Apache-2.0
"""ImageNet with DistributedDataParallel over gloo or NCCL.

Images come from a folder of the cluster's storage, one folder for each class, by torchvision. Where the folder or
torchvision is missing the script says so, and makes up images. It runs under Python 3.6 and PyTorch 1.2, too.
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))
MADE_UP = 64


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, images):
        return torch.relu(self.body(images) + self.skip(images))


def resnet(width: int, blocks: int, classes: int) -> nn.Module:
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage in range(4):
        for number in range(blocks):
            layers.append(Block(inputs, width << stage, 2 if stage and not number else 1))
            inputs = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def images_of(folder: str, size: int, rank: int):
    """The data set, and how many classes it has."""
    why = f"{folder or 'a folder of images'} is not here"
    if folder and Path(folder).is_dir():
        try:
            from torchvision import datasets, transforms
        except ImportError:
            why = "torchvision is not here"
        else:
            change = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
            read = datasets.ImageFolder(folder, transforms.Compose(change))
            return read, len(read.classes)
    if rank == 0:
        print(f"{why}: trains on {MADE_UP} images that are made up", flush=True)
    classes, chance = 10, torch.Generator()
    chance.manual_seed(7)
    labels = torch.randint(0, classes, (MADE_UP,), generator=chance)
    noise = torch.randn(MADE_UP, 3, size, size, generator=chance)
    return TensorDataset(noise + labels.view(-1, 1, 1, 1).float(), labels), classes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo")
    parser.add_argument("--data", default="", help="a folder with one folder of images for each class")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()
    gpus = torch.cuda.device_count()
    dist.init_process_group(options.backend if gpus else "gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    if not gpus:
        on_processors(options, rank)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % gpus) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    images, classes = images_of(options.data, options.size, rank)
    torch.manual_seed(7)
    model = resnet(options.width, 2, classes).to(device)
    checkpoint, done = CHECKPOINTS / "imagenet.pt", torch.zeros(1, dtype=torch.int64, device=device)
    if rank == 0 and checkpoint.exists():
        kept = torch.load(str(checkpoint), map_location=device)
        model.load_state_dict(kept["model"])
        done.fill_(kept["epoch"])
    dist.broadcast(done, 0)
    # DDP gives every rank the weights that rank 0 has; the sampler gives every rank images of its own.
    parallel = DistributedDataParallel(model, device_ids=[device.index] if gpus else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4)
    sampler = DistributedSampler(images)
    for epoch in range(int(done) + 1, options.epochs + 1):
        sampler.set_epoch(epoch)
        for pictures, labels in DataLoader(images, options.batch, sampler=sampler):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(pictures.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        if rank == 0:
            report(epoch, mean.item() / size, size)
            torch.save({"epoch": epoch, "model": model.state_dict()}, str(checkpoint))
    dist.destroy_process_group()


def on_processors(options, rank: int) -> None:
    """Keeps the model and its images to what processors carry. Each rank has threads enough in one."""
    torch.set_num_threads(1)
    options.width, options.size = min(options.width, 8), min(options.size, 64)
    if rank == 0:
        print("no GPU here: over gloo, a smaller model on smaller images", flush=True)


def report(epoch: int, loss: float, ranks: int) -> None:
    step = {"step": epoch, "loss": loss}
    print(f"epoch {epoch} loss {loss:.5f}", flush=True)
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps(step) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({**step, "ranks": ranks}) + "\n")


if __name__ == "__main__":
    main()
