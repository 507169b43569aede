# SPDX-License-Identifier: Apache-2.0
"""MultiWorkerMirroredStrategy: TF_CONFIG, which the launcher writes, says who the other workers are."""

import argparse

import tensorflow as tf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    # Before anything else of TensorFlow: it opens the port on which the others wait.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    size = 128 * strategy.num_replicas_in_sync
    rows = tf.random.stateless_uniform((100 * size, 32), seed=(7, 7))
    labels = tf.cast(tf.reduce_sum(rows, axis=1) > 16, tf.int64)
    data = tf.data.Dataset.from_tensor_slices((rows, labels)).repeat().batch(size)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(2)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(data, epochs=options.epochs, steps_per_epoch=100, verbose=0)
    if strategy.cluster_resolver.task_type in ("chief", None):
        for epoch, loss in enumerate(history.history["loss"], start=1):
            print(f"epoch {epoch} workers {strategy.num_replicas_in_sync} loss {loss:.5f}")


if __name__ == "__main__":
    main()
