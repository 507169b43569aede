# SPDX-License-Identifier: Apache-2.0
"""Logistic regression on Ray: points lie on every node, each epoch sends the weights there and sums the gradients."""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))
COLUMNS = 20_000


@ray.remote
class Shard:
    """An actor keeps its share of the points, and says what they make of weights."""

    def __init__(self, seed, rows):
        chance = np.random.default_rng(seed)
        self.points = chance.normal(size=(rows, COLUMNS)).astype(np.float32)
        self.labels = (self.points[:, :50].sum(axis=1) > 0).astype(np.float32)

    def node(self):
        return ray.get_runtime_context().get_node_id()

    def gradient(self, weights):
        guesses = 1 / (1 + np.exp(-np.clip(self.points @ weights, -30, 30)))
        loss = -np.log(np.where(self.labels > 0, guesses, 1 - guesses) + 1e-7).mean()
        return self.points.T @ (guesses - self.labels) / len(self.labels), float(loss)


@ray.remote(num_cpus=0, scheduling_strategy="SPREAD")
def mean(*parts):
    """Anywhere: the gradients travel between the nodes, not through the script."""
    return sum(gradient for gradient, _ in parts) / len(parts), sum(loss for _, loss in parts) / len(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=300)
    options = parser.parse_args()
    ray.init()
    nodes = [node for node in ray.nodes() if node["Alive"]]
    # Two on every node, whatever the number of its processors. "SPREAD" would be a wish that a busy node is denied.
    places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes] * 2
    shards = [
        Shard.options(num_cpus=0, scheduling_strategy=place).remote(seed, options.rows)
        for seed, place in enumerate(places)
    ]
    held = len(set(ray.get([shard.node.remote() for shard in shards])))
    checkpoint = CHECKPOINTS / "weights.npy"
    done, weights = 0, np.zeros(COLUMNS, np.float32)
    if checkpoint.exists():
        done, weights = int(np.load(checkpoint)[0]), np.load(checkpoint)[1:]
    for epoch in range(done + 1, options.epochs + 1):
        sent = ray.put(weights)
        gradient, loss = ray.get(mean.remote(*[shard.gradient.remote(sent) for shard in shards]))
        weights = weights - 0.5 * gradient
        print(f"epoch {epoch} loss {loss:.5f}", flush=True)
        np.save(checkpoint, np.concatenate([[epoch], weights]).astype(np.float32))
        with PROGRESS.open("a") as progress:
            progress.write(json.dumps({"step": epoch, "loss": loss}) + "\n")
    result = {"loss": loss, "nodes": len(nodes), "held": held}
    (OUTPUT / "result.json").write_text(json.dumps(result) + "\n")
    print(f"done: loss {loss:.5f}, points on {held} of {len(nodes)} nodes")


if __name__ == "__main__":
    main()
