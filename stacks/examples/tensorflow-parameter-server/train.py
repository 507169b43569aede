# SPDX-License-Identifier: Apache-2.0
"""ParameterServerStrategy: the chief hands out steps, workers compute them, servers hold the variables."""

import argparse

import tensorflow as tf


def serve(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver, quiet: bool) -> None:
    """Workers and servers answer the chief until the run ends."""
    if not quiet:
        print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()


def coordinate(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver, epochs: int) -> None:
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros((32, 1)))

    @tf.function
    def step() -> tf.Tensor:
        def on_worker() -> tf.Tensor:
            rows = tf.random.uniform((256, 32))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((rows @ weights - tf.reduce_sum(rows, axis=1, keepdims=True)) ** 2)
            weights.assign_sub(0.02 * tape.gradient(loss, weights))
            return loss

        return strategy.run(on_worker)

    for epoch in range(1, epochs + 1):
        losses = [coordinator.schedule(step) for _ in range(100)]
        coordinator.join()
        print(f"epoch {epoch} loss {sum(loss.fetch() for loss in losses) / len(losses):.5f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver, options.quiet)
    else:
        coordinate(resolver, options.epochs)


if __name__ == "__main__":
    main()
