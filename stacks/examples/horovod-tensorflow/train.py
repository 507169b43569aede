# SPDX-License-Identifier: Apache-2.0
"""Horovod with TensorFlow: gradients of a GradientTape averaged over all nodes."""

import argparse
import json
import os
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    half = os.environ.get("TRAINYARD_COMPRESSION") == "fp16"
    compression = hvd.Compression.fp16 if half else hvd.Compression.none
    weights, done = tf.Variable(tf.zeros((32, 1))), tf.Variable(0)
    checkpoint = CHECKPOINTS / "weights.npz"
    if hvd.rank() == 0 and checkpoint.exists():
        kept = np.load(checkpoint)
        weights.assign(kept["weights"])
        done.assign(kept["epoch"])
    hvd.broadcast_variables([weights, done], root_rank=0)
    for epoch in range(int(done) + 1, options.epochs + 1):
        chance = tf.random.Generator.from_seed(epoch * hvd.size() + hvd.rank())
        for _ in range(options.steps):
            rows = chance.uniform((64, 32))
            target = tf.reduce_sum(rows, axis=1, keepdims=True)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((rows @ weights - target) ** 2)
            tape = hvd.DistributedGradientTape(tape, compression=compression)
            (gradient,) = tape.gradient(loss, [weights])
            weights.assign_sub(options.lr * gradient)
        mean = float(hvd.allreduce(loss))
        if hvd.rank() == 0:
            told = {"step": epoch, "loss": mean}
            print(f"epoch {epoch} loss {mean:.5f}", flush=True)
            np.savez(checkpoint, weights=weights.numpy(), epoch=epoch)
            with PROGRESS.open("a") as progress:
                progress.write(json.dumps(told) + "\n")
            (OUTPUT / "result.json").write_text(json.dumps({**told, "ranks": hvd.size()}) + "\n")


if __name__ == "__main__":
    main()
