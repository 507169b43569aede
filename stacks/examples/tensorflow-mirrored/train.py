# SPDX-License-Identifier: Apache-2.0
"""MirroredStrategy: a copy of the model on every GPU of one node, gradients summed between them."""

import argparse

import tensorflow as tf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    strategy = tf.distribute.MirroredStrategy()
    size = 128 * strategy.num_replicas_in_sync
    rows = tf.random.stateless_uniform((100 * size, 32), seed=(7, 7))
    labels = tf.cast(tf.reduce_sum(rows, axis=1) > 16, tf.int64)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(2)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(rows, labels, batch_size=size, epochs=options.epochs, verbose=0)
    for epoch, loss in enumerate(history.history["loss"], start=1):
        print(f"epoch {epoch} replicas {strategy.num_replicas_in_sync} loss {loss:.5f}")


if __name__ == "__main__":
    main()
