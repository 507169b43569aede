# SPDX-License-Identifier: Apache-2.0
"""A scikit-learn search whose candidates joblib hands to the Dask cluster instead of the processors of one node."""

import argparse
import json
import os
from pathlib import Path

import joblib
from dask.distributed import Client
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, ParameterSampler
from sklearn.svm import SVC

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=4, help="candidates between two checkpoints")
    options = parser.parse_args()
    rows, labels = make_classification(n_samples=options.rows, n_features=20, n_informative=10, random_state=7)
    space = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)}
    candidates = list(ParameterSampler(space, options.candidates, random_state=7))
    checkpoint = CHECKPOINTS / "scores.json"
    scores = json.loads(checkpoint.read_text()) if checkpoint.exists() else []
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client, joblib.parallel_backend("dask"):
        # As many as the job has worker nodes.
        client.wait_for_workers(int(os.environ.get("OCI__WORKER_COUNT", "1")))
        for first in range(len(scores), len(candidates), options.at_once):
            some = [
                {name: [value] for name, value in one.items()} for one in candidates[first : first + options.at_once]
            ]
            search = GridSearchCV(SVC(), some, scoring="accuracy", refit=False).fit(rows, labels)
            scores += list(search.cv_results_["mean_test_score"])
            checkpoint.write_text(json.dumps(scores))
            print(f"candidates {len(scores)} loss {1 - max(scores):.5f}", flush=True)
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps({"step": len(scores), "loss": 1 - max(scores)}) + "\n")
    best = candidates[max(range(len(scores)), key=scores.__getitem__)]
    print(f"best {best}")
    (OUTPUT / "result.json").write_text(json.dumps({"best": best, "loss": 1 - max(scores)}) + "\n")


if __name__ == "__main__":
    main()
