# SPDX-License-Identifier: Apache-2.0
"""Gradient-boosted trees on rows that no single node has to hold: made, trained and scored on the Dask cluster."""

import argparse
import json
import os
from pathlib import Path

import dask.array as da
from dask.distributed import Client, wait
from lightgbm import Booster, DaskLGBMRegressor

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--leaves", type=int, default=31)
    options = parser.parse_args()
    # LightGBM cannot go on with part of a model on Dask: what was trained is kept whole.
    checkpoint = CHECKPOINTS / "model.txt"
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        # As many as the job has worker nodes.
        client.wait_for_workers(int(os.environ.get("OCI__WORKER_COUNT", "1")))
        chance = da.random.default_rng(7)
        share = -(-options.rows // 8)
        rows = chance.random((options.rows, 20), chunks=(share, 20)).persist()
        target = 3 * rows[:, 0] - 2 * rows[:, 1] ** 2 + chance.normal(0, 0.1, options.rows, chunks=share)
        wait(rows)
        if not checkpoint.exists():
            model = DaskLGBMRegressor(client=client, n_estimators=options.trees, num_leaves=options.leaves, verbose=-1)
            model.fit(rows, target).booster_.save_model(str(checkpoint))
        trained = Booster(model_file=str(checkpoint))
        guesses = rows.map_blocks(trained.predict, drop_axis=1, dtype=float)
        loss = float(((guesses - target) ** 2).mean().compute())
    print(f"trees {trained.num_trees()} loss {loss:.5f}")
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps({"step": trained.num_trees(), "loss": loss}) + "\n")
    trained.save_model(str(OUTPUT / "model.txt"))
    (OUTPUT / "result.json").write_text(json.dumps({"trees": trained.num_trees(), "loss": loss}) + "\n")


if __name__ == "__main__":
    main()
