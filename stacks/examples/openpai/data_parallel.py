# SPDX-License-Identifier: Apache-2.0
"""One task with all of its GPUs, in one process: as OpenPAI's example of DataParallel."""

import argparse
import json

import digits
import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    device = digits.device_of(0)
    model = torch.nn.DataParallel(digits.network().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(options.epochs):
        images, labels = digits.batch(epoch)
        digits.tell(epoch + 1, digits.step(model, optimizer, images.to(device), labels.to(device)))
    digits.keep(json.dumps({"ranks": 1}))


if __name__ == "__main__":
    main()
