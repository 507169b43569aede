# SPDX-License-Identifier: Apache-2.0
"""A least-squares fit on a Dask cluster: blocks on every worker, a reduction between them, one result."""

import json
import os
from pathlib import Path

import dask.array as da
import numpy as np
from dask.distributed import Client

OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))
TRUE = np.arange(1.0, 9.0)


def main() -> None:
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        chance = da.random.RandomState(7)
        rows = chance.normal(size=(8000 * max(1, workers), len(TRUE)), chunks=(2000, len(TRUE)))
        labels = rows @ TRUE
        # Sums over all blocks: partial results travel from worker to worker.
        gram, projected = da.compute(rows.T @ rows, rows.T @ labels)
        found = np.linalg.solve(gram, projected)
    loss = float(np.abs(found - TRUE).max())
    print(f"workers {workers} loss {loss:.2e}", flush=True)
    with PROGRESS.open("a") as progress:
        progress.write(json.dumps({"step": 1, "loss": loss}) + "\n")
    (OUTPUT / "result.json").write_text(json.dumps({"workers": workers, "loss": loss}) + "\n")
    if loss > 1e-6:
        raise SystemExit(f"the fit is off by {loss}")


if __name__ == "__main__":
    main()
