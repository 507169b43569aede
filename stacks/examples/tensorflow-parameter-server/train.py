# SPDX-License-Identifier: Apache-2.0
"""ParameterServerStrategy: the chief hands out steps, workers compute them, servers hold the variables."""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


def serve(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver, quiet: bool) -> None:
    """Workers and servers answer the chief until the run ends."""
    if not quiet:
        print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()


def coordinate(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver, epochs: int, steps: int) -> None:
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    checkpoint = CHECKPOINTS / "weights.npz"
    kept = dict(np.load(checkpoint)) if checkpoint.exists() else {"epoch": 0, "weights": np.zeros((32, 1), np.float32)}
    with strategy.scope():
        weights = tf.Variable(kept["weights"])

    @tf.function
    def step() -> tf.Tensor:
        def on_worker() -> tf.Tensor:
            rows = tf.random.uniform((64, 32))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((rows @ weights - tf.reduce_sum(rows, axis=1, keepdims=True)) ** 2)
            weights.assign_sub(0.02 * tape.gradient(loss, weights))
            return loss

        return strategy.run(on_worker)

    for epoch in range(int(kept["epoch"]) + 1, epochs + 1):
        losses = [coordinator.schedule(step) for _ in range(steps)]
        coordinator.join()
        loss = float(sum(loss.fetch() for loss in losses) / len(losses))
        print(f"epoch {epoch} loss {loss:.5f}", flush=True)
        np.savez(checkpoint, epoch=epoch, weights=weights.numpy())
        with PROGRESS.open("a") as progress:
            progress.write(json.dumps({"step": epoch, "loss": loss}) + "\n")
        (OUTPUT / "result.json").write_text(json.dumps({"step": epoch, "loss": loss}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver, options.quiet)
    else:
        coordinate(resolver, options.epochs, options.steps)


if __name__ == "__main__":
    main()
