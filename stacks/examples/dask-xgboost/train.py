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


def where() -> Config:
    """XGBoost's tracker goes to the address that the run's firewall rules were planned for."""
    host, _, port = os.environ.get("TRAINYARD_TRACKER", "").partition(":")
    return Config(tracker_host_ip=host or None, tracker_port=int(port or 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--every", type=int, default=10, help="rounds between two checkpoints")
    options = parser.parse_args()
    checkpoint = CHECKPOINTS / "model.json"
    model = xgb.Booster(model_file=str(checkpoint)) if checkpoint.exists() else None
    loss = None
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        # As many as the job has worker nodes.
        client.wait_for_workers(int(os.environ.get("OCI__WORKER_COUNT", "1")))
        chance = da.random.default_rng(7)
        rows = chance.random((options.rows, 20), chunks=(-(-options.rows // 8), 20)).persist()
        target = (rows[:, 0] * rows[:, 1] > 0.25).astype(int)
        matrix = dxgb.DaskDMatrix(client, rows, target)
        while (done := model.num_boosted_rounds() if model else 0) < options.rounds:
            rounds = min(options.every, options.rounds - done)
            trained = dxgb.train(
                client, PARAMETERS, matrix, rounds, evals=[(matrix, "train")], xgb_model=model, coll_cfg=where()
            )
            model = trained["booster"]
            model.save_model(checkpoint)
            for number, loss in enumerate(trained["history"]["train"]["logloss"], start=done + 1):
                print(f"round {number} loss {loss:.5f}", flush=True)
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps({"step": done + rounds, "loss": loss}) + "\n")
    model.save_model(OUTPUT / "model.json")
    (OUTPUT / "result.json").write_text(json.dumps({"rounds": model.num_boosted_rounds(), "loss": loss}) + "\n")


if __name__ == "__main__":
    main()
