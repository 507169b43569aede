# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Accelerate as its guide has it: nothing here says where it trains. Each process gets its own batches."""

import argparse
import json
import os
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    set_seed(7)
    accelerator = Accelerator()
    rows = torch.rand(6400, 32)
    data = DataLoader(TensorDataset(rows, (rows.sum(1) > 16).long()), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    checkpoint, done = CHECKPOINTS / "model.pt", 0
    # Every rank has the checkpoints of earlier starts.
    if checkpoint.exists():
        kept = torch.load(checkpoint, map_location="cpu")
        model.load_state_dict(kept["model"])
        done = kept["epoch"]
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for epoch in range(done + 1, options.epochs + 1):
        for points, labels in data:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(points), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        mean = accelerator.gather(loss.detach().reshape(1)).mean().item()
        accelerator.print(f"epoch {epoch} loss {mean:.5f}", flush=True)
        if accelerator.is_main_process:
            state = {"epoch": epoch, "model": accelerator.unwrap_model(model).state_dict()}
            accelerator.save(state, checkpoint)
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps({"step": epoch, "loss": mean}) + "\n")
            result = {"loss": mean, "ranks": accelerator.num_processes, "batches": len(data)}
            (OUTPUT / "result.json").write_text(json.dumps(result) + "\n")
    accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
