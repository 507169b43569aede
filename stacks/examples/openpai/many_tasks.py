# SPDX-License-Identifier: Apache-2.0
"""Many tasks that train alone, each with another seed by its index, and a master that gathers what they found."""

import argparse
import json
import time
from pathlib import Path

import digits
import torch


def train(index: int, folder: Path) -> None:
    model = digits.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        loss = digits.step(model, optimizer, *digits.batch(100 * index + epoch))
        digits.tell(epoch + 1, loss)
    unfinished = folder / f".results_{index}"
    unfinished.write_text(f"{loss}\n")
    # Whoever gathers sees whole files only.
    unfinished.replace(folder / f"results_{index}.csv")


def gather(number: int, folder: Path) -> None:
    files = [folder / f"results_{index}.csv" for index in range(number)]
    while not all(file.exists() for file in files):
        time.sleep(0.5)
    print(f"the mean loss {sum(float(file.read_text()) for file in files) / number:.5f} of {number} tasks", flush=True)
    digits.keep(json.dumps({"tasks": number}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task_index", type=int)
    parser.add_argument("--number", type=int)
    parser.add_argument("--data_path", type=Path, required=True)
    options = parser.parse_args()
    options.data_path.mkdir(parents=True, exist_ok=True)
    if options.number:
        gather(options.number, options.data_path)
    else:
        train(options.task_index, options.data_path)


if __name__ == "__main__":
    main()
