# SPDX-License-Identifier: Apache-2.0
"""XGBoost's own Dask interface: each worker boosts on its part of the rows, the loss of every round is printed."""

import argparse
import os

import dask.array as da
from dask.distributed import Client
from xgboost import dask as dxgb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        client.wait_for_workers(1)
        chance = da.random.default_rng(7)
        rows = chance.random((options.rows, 20), chunks=(100_000, 20))
        target = (rows[:, 0] * rows[:, 1] > 0.25).astype(int)
        trained = dxgb.train(
            client,
            {"objective": "binary:logistic", "tree_method": "hist", "eta": 0.1},
            (matrix := dxgb.DaskDMatrix(client, rows, target)),
            num_boost_round=options.rounds,
            evals=[(matrix, "train")],
        )
        for number, loss in enumerate(trained["history"]["train"]["logloss"], start=1):
            print(f"round {number} loss {loss:.5f}")


if __name__ == "__main__":
    main()
