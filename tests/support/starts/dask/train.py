# SPDX-License-Identifier: Apache-2.0
"""Dask: each worker computes the gradient of its rows, and the script on the scheduler's node adds them up."""

import os

import numpy as np
from dask.distributed import Client
from steps import RATE, Steps, batch, here


def gradient_and_loss(rows, sums, weights):
    error = np.array(rows) @ weights - np.array(sums)
    return 2 * np.array(rows).T @ error / len(rows), float((error**2).mean())


def job_run() -> str:
    return os.environ["JOB_RUN_OCID"]


def main() -> None:
    steps = Steps()
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        wanted = int(os.environ["OCI__WORKER_COUNT"])
        client.wait_for_workers(wanted)
        weights = np.array([[weight] for weight in steps.weights])
        for step in steps.left():
            runs = client.run(job_run)
            here(0, len(runs) + 1)
            made = [
                client.submit(gradient_and_loss, *batch(step, number), weights, workers=[worker], pure=False)
                for number, worker in enumerate(sorted(runs))
            ]
            parts = client.gather(made)
            weights = weights - RATE * sum(gradient for gradient, _ in parts) / len(parts)
            loss = sum(loss for _, loss in parts) / len(parts)
            steps.after(step, loss, weights[:, 0].tolist(), 0, world=len(runs) + 1, workers=sorted(runs.values()))


if __name__ == "__main__":
    main()
