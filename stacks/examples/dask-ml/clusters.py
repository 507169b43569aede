# SPDX-License-Identifier: Apache-2.0
"""Dask-ML's k-means on rows that lie on the workers; the centres are the checkpoint."""

import argparse
import json
import os
from pathlib import Path

import dask.array as da
import numpy as np
from dask.distributed import Client
from dask_ml.cluster import KMeans

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))
CENTRES = np.array([[0.0, 0.0], [0.0, 5.0], [5.0, 0.0]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--passes", type=int, default=4)
    options = parser.parse_args()
    checkpoint = CHECKPOINTS / "centres.json"
    kept = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"pass": 0, "centres": None}
    loss = 0.0
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        # As many as the job has worker nodes.
        client.wait_for_workers(int(os.environ.get("OCI__WORKER_COUNT", "1")))
        chance = da.random.default_rng(7)
        share = -(-options.rows // 6)
        noise = chance.normal(0, 0.5, (options.rows, 2), chunks=(share, 2))
        rows = (noise + da.from_array(CENTRES[np.arange(options.rows) % 3], chunks=(share, 2))).persist()
        centres = np.array(kept["centres"]) if kept["centres"] else rows[:3].compute()
        for number in range(kept["pass"] + 1, options.passes + 1):
            model = KMeans(n_clusters=3, init=centres, max_iter=2).fit(rows)
            centres, loss = model.cluster_centers_, float(model.inertia_) / options.rows
            checkpoint.write_text(json.dumps({"pass": number, "centres": centres.tolist()}))
            print(f"pass {number} loss {loss:.5f}", flush=True)
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps({"step": number, "loss": loss}) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({"centres": centres.round(3).tolist(), "loss": loss}) + "\n")


if __name__ == "__main__":
    main()
