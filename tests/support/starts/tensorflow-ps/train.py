# SPDX-License-Identifier: Apache-2.0
"""ParameterServerStrategy: asynchronous, with as many steps at a time as there are workers."""

import json
import os

import tensorflow as tf
from steps import RATE, Steps, batch, here


def rank_and_world() -> tuple[int, int]:
    """Reads TF_CONFIG, which lists chief, workers and servers in the order of their ranks."""
    told = json.loads(os.environ["TF_CONFIG"])
    tasks = [(kind, index) for kind, addresses in told["cluster"].items() for index in range(len(addresses))]
    return tasks.index((told["task"]["type"], told["task"]["index"])), len(tasks)


def coordinate(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver, world: int) -> None:
    steps = Steps()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    workers = resolver.cluster_spec().num_tasks("worker")
    with strategy.scope():
        weights = tf.Variable(tf.constant([[weight] for weight in steps.weights], tf.float64))

    @tf.function
    def train(rows: tf.Tensor, sums: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows @ weights - sums) ** 2)
        weights.assign_sub(RATE * tape.gradient(loss, weights))
        return loss

    for step in steps.left():
        batches = [[tf.constant(part, tf.float64) for part in batch(step, worker)] for worker in range(workers)]
        losses = [coordinator.schedule(train, args=tuple(parts)) for parts in batches]
        coordinator.join()
        loss = sum(float(one.fetch()) for one in losses) / workers
        steps.after(step, loss, weights[:, 0].numpy().tolist(), 0, world=world)


def main() -> None:
    rank, world = rank_and_world()
    here(rank, world)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        coordinate(resolver, world)
    else:
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()


if __name__ == "__main__":
    main()
