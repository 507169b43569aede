# SPDX-License-Identifier: Apache-2.0
"""Horovod with TensorFlow: gradients of a GradientTape averaged over all nodes."""

import argparse
import os

import horovod.tensorflow as hvd
import tensorflow as tf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    half = os.environ.get("TRAINYARD_COMPRESSION") == "fp16"
    compression = hvd.Compression.fp16 if half else hvd.Compression.none
    chance = tf.random.Generator.from_seed(hvd.rank())
    weights = tf.Variable(tf.zeros((32, 1)))
    for step in range(options.steps):
        rows = chance.uniform((256, 32))
        target = tf.reduce_sum(rows, axis=1, keepdims=True)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows @ weights - target) ** 2)
        tape = hvd.DistributedGradientTape(tape, compression=compression)
        (gradient,) = tape.gradient(loss, [weights])
        weights.assign_sub(options.lr * gradient)
        if step == 0:
            # After the first step every node begins from what rank 0 has.
            hvd.broadcast_variables([weights], root_rank=0)
        if step % 100 == 0 and hvd.rank() == 0:
            print(f"step {step} loss {float(loss):.5f}")


if __name__ == "__main__":
    main()
