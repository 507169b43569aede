# SPDX-License-Identifier: Apache-2.0
"""XGBoost's own Dask interface: each worker boosts on its part of the rows, and goes on from the last checkpoint."""

import argparse
import json
import os
from pathlib import Path

import dask.array as da
import xgboost as xgb
from dask.distributed import Client
from xgboost import dask as dxgb
from xgboost.collective import Config

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))
PARAMETERS = {"objective": "binary:logistic", "tree_method": "hist", "eta": 0.3, "eval_metric": "logloss"}


class Keep(xgb.callback.TrainingCallback):
    """Runs in the workers: the first of them keeps the model every few rounds, in its own node's folder."""

    def __init__(self, every: int) -> None:
        self.every = every

    def after_iteration(self, model, epoch: int, evals_log) -> bool:
        if (epoch + 1) % self.every == 0 and xgb.collective.get_rank() == 0:
            model.save_model(Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."), "model.json"))
        return False


def where() -> Config:
    """XGBoost's tracker goes to the address that the run's firewall rules were planned for."""
    host, _, port = os.environ.get("TRAINYARD_TRACKER", "").partition(":")
    return Config(tracker_host_ip=host or None, tracker_port=int(port or 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--every", type=int, default=5, help="rounds between two checkpoints")
    options = parser.parse_args()
    checkpoint = CHECKPOINTS / "model.json"
    model = xgb.Booster(model_file=str(checkpoint)) if checkpoint.exists() else None
    done = model.num_boosted_rounds() if model else 0
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        # As many as the job has worker nodes.
        client.wait_for_workers(int(os.environ.get("OCI__WORKER_COUNT", "1")))
        chance = da.random.default_rng(7)
        rows = chance.random((options.rows, 20), chunks=(-(-options.rows // 8), 20)).persist()
        target = (rows[:, 0] * rows[:, 1] > 0.25).astype(int)
        matrix = dxgb.DaskDMatrix(client, rows, target)
        # One training, not one for each checkpoint: each takes the tracker's port anew, and falls back to a random one.
        trained = dxgb.train(
            client, PARAMETERS, matrix, max(1, options.rounds - done), evals=[(matrix, "train")], xgb_model=model,
            coll_cfg=where(), callbacks=[Keep(options.every)],
        )  # fmt: skip
    losses = trained["history"]["train"]["logloss"]
    with PROGRESS.open("a") as progress:
        for number, loss in enumerate(losses, start=done + 1):
            print(f"round {number} loss {loss:.5f}")
            progress.write(json.dumps({"step": number, "loss": loss}) + "\n")
    trained["booster"].save_model(OUTPUT / "model.json")
    (OUTPUT / "result.json").write_text(json.dumps({"rounds": done + len(losses), "loss": losses[-1]}) + "\n")


if __name__ == "__main__":
    main()
