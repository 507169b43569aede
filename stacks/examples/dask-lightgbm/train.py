# SPDX-License-Identifier: Apache-2.0
"""Gradient-boosted trees on rows that no single node has to hold: made, trained and scored on the Dask cluster."""

import argparse
import os

import dask.array as da
from dask.distributed import Client
from lightgbm import DaskLGBMRegressor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=63)
    options = parser.parse_args()
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        client.wait_for_workers(1)
        chance = da.random.default_rng(7)
        rows = chance.random((options.rows, 20), chunks=(100_000, 20))
        target = 3 * rows[:, 0] - 2 * rows[:, 1] ** 2 + chance.normal(0, 0.1, options.rows, chunks=100_000)
        model = DaskLGBMRegressor(client=client, n_estimators=options.trees, num_leaves=options.leaves)
        model.fit(rows, target)
        loss = ((model.predict(rows) - target) ** 2).mean().compute()
        print(f"trees {options.trees} loss {loss:.5f}")


if __name__ == "__main__":
    main()
