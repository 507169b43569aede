# SPDX-License-Identifier: Apache-2.0
"""Fits a line to noisy points that lie on the Dask workers: small enough for a laptop, and its loss falls."""

import argparse
import json
import os
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--points", type=int, default=100_000)
    options = parser.parse_args()
    checkpoint = CHECKPOINTS / "line.json"
    kept = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"epoch": 0, "line": [0.0, 0.0]}
    line = np.array(kept["line"])
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        # As many as the job has worker nodes.
        client.wait_for_workers(int(os.environ.get("OCI__WORKER_COUNT", "1")))
        chance = da.random.default_rng(7)
        x = chance.uniform(-1, 1, options.points, chunks=-(-options.points // 8)).persist()
        y = (3 * x - 1 + chance.normal(0, 0.1, x.shape, chunks=x.chunks)).persist()
        for epoch in range(kept["epoch"] + 1, options.epochs + 1):
            for _ in range(10):
                error = line[0] * x + line[1] - y
                slope, intercept = dask.compute((error * x).mean(), error.mean())
                line -= [0.5 * slope, 0.2 * intercept]
            loss = float(((line[0] * x + line[1] - y) ** 2).mean().compute())
            print(f"epoch {epoch} loss {loss:.5f}", flush=True)
            checkpoint.write_text(json.dumps({"epoch": epoch, "line": list(line)}))
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps({"step": epoch, "loss": loss}) + "\n")
        held = {worker: len(chunks) for worker, chunks in client.has_what().items()}
    result = {"slope": round(line[0], 4), "intercept": round(line[1], 4), "points": options.points, "held": held}
    (OUTPUT / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"done: y = {line[0]:.2f} x + {line[1]:.2f}, from points on {len(held)} workers")


if __name__ == "__main__":
    main()
