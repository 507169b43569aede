# SPDX-License-Identifier: Apache-2.0
"""A scikit-learn search whose candidates joblib hands to the Dask cluster instead of the processors of one node."""

import argparse
import os

import joblib
from dask.distributed import Client
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.model_selection import RandomizedSearchCV
from sklearn.svm import SVC


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--rows", type=int, default=5_000)
    options = parser.parse_args()
    rows, labels = make_classification(n_samples=options.rows, n_features=20, n_informative=10, random_state=7)
    search = RandomizedSearchCV(
        SVC(),
        {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)},
        n_iter=options.candidates,
        scoring="accuracy",
        random_state=7,
    )
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        client.wait_for_workers(1)
        with joblib.parallel_backend("dask"):
            search.fit(rows, labels)
    print(f"best {search.best_params_} loss {1 - search.best_score_:.5f}")


if __name__ == "__main__":
    main()
