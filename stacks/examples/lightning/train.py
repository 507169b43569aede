# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer. It is told neither nodes nor devices: both come from the run."""

import argparse
import json
import os
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


class Sums(lightning.LightningModule):
    """Whether the numbers of a row make more than half of what they could."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))

    def training_step(self, batch, _):
        rows, labels = batch
        loss = nn.functional.cross_entropy(self.layers(rows), labels)
        self.log("loss", loss, on_epoch=True, on_step=False, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)

    def on_train_epoch_end(self) -> None:
        loss = float(self.trainer.callback_metrics["loss"])
        if self.trainer.is_global_zero:
            print(f"epoch {self.current_epoch + 1} loss {loss:.5f}", flush=True)
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps({"step": self.current_epoch + 1, "loss": loss}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    lightning.seed_everything(7)
    rows = torch.rand(6400, 32)
    data = DataLoader(TensorDataset(rows, (rows.sum(1) > 16).long()), batch_size=64, shuffle=True)
    model = Sums(options.lr)
    kept = ModelCheckpoint(CHECKPOINTS, filename="last", save_on_train_epoch_end=True, enable_version_counter=False)
    trainer = lightning.Trainer(
        max_epochs=options.epochs, callbacks=[kept], default_root_dir=str(OUTPUT), logger=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    before = CHECKPOINTS / "last.ckpt"
    trainer.fit(model, data, ckpt_path=str(before) if before.exists() else None)
    if trainer.is_global_zero:
        result = {"loss": float(trainer.callback_metrics["loss"]), "ranks": trainer.world_size}
        (OUTPUT / "result.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
