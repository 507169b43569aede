# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 with DataParallel: one process, all accelerators of one node."""

import argparse

import cifar10
import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    cifar10.add_options(parser)
    options = parser.parse_args()
    gpus = torch.cuda.device_count()
    device = torch.device("cuda" if gpus else "cpu")
    how = "each batch is split among them" if gpus else "the processor trains"
    print(f"{gpus} GPUs: {how}", flush=True)
    torch.manual_seed(7)
    model = cifar10.network().to(device)
    done = cifar10.restore(model, device)
    # Without GPUs it passes each batch on to the model as it is.
    parallel = nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    for epoch in range(done + 1, options.epochs + 1):
        for images, labels in cifar10.batches(options.batches, options.batch, epoch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
        cifar10.keep(model, epoch, loss.item(), gpus=gpus)


if __name__ == "__main__":
    main()
