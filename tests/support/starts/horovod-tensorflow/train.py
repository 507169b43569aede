# SPDX-License-Identifier: Apache-2.0
"""Horovod's DistributedGradientTape with TensorFlow."""

import horovod.tensorflow as hvd
import tensorflow as tf
from steps import RATE, Steps, batch, here


def main() -> None:
    steps = Steps()
    hvd.init()
    here(hvd.rank(), hvd.size())
    weights = tf.Variable([[weight] for weight in steps.weights], dtype=tf.float64)
    for step in steps.left():
        rows, sums = (tf.constant(part, tf.float64) for part in batch(step, hvd.rank()))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows @ weights - sums) ** 2)
        (gradient,) = hvd.DistributedGradientTape(tape).gradient(loss, [weights])
        weights.assign_sub(RATE * gradient)
        mean = float(hvd.allreduce(loss))
        steps.after(step, mean, weights[:, 0].numpy().tolist(), hvd.rank(), world=hvd.size())


if __name__ == "__main__":
    main()
