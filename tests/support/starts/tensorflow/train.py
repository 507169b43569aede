# SPDX-License-Identifier: Apache-2.0
"""MultiWorkerMirroredStrategy, with a custom training loop."""

import tensorflow as tf
from steps import RATE, Steps, batch, here


def main() -> None:
    steps = Steps()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rank, world = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
    here(rank, world)
    with strategy.scope():
        start = tf.constant([[weight] for weight in steps.weights], tf.float64)
        weights = tf.Variable(start, aggregation=tf.VariableAggregation.MEAN)

    @tf.function
    def train(rows: tf.Tensor, sums: tf.Tensor) -> tf.Tensor:
        def on_replica() -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((rows @ weights - sums) ** 2)
            weights.assign_sub(RATE * tape.gradient(loss, weights))
            return loss

        return strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(on_replica), axis=None)

    for step in steps.left():
        loss = train(*(tf.constant(part, tf.float64) for part in batch(step, rank)))
        steps.after(step, float(loss), weights[:, 0].numpy().tolist(), rank, world=world)


if __name__ == "__main__":
    main()
