# SPDX-License-Identifier: Apache-2.0
"""MultiWorkerMirroredStrategy: TF_CONFIG, which the launcher writes, says who the other workers are."""

import argparse
import json
import os
from pathlib import Path

import tensorflow as tf

# Told to every run; by hand, everything goes to the folder it is started in.
OUTPUT = Path(os.environ.get("TRAINYARD_OUTPUT", "."))
CHECKPOINTS = Path(os.environ.get("TRAINYARD_CHECKPOINTS", "."))
PROGRESS = Path(os.environ.get("TRAINYARD_PROGRESS", os.devnull))


class Told(tf.keras.callbacks.Callback):
    """What the first worker tells of each epoch."""

    def __init__(self, replicas: int) -> None:
        super().__init__()
        self.replicas = replicas

    def on_epoch_end(self, epoch: int, logs=None) -> None:
        told = {"step": epoch + 1, "loss": logs["loss"]}
        print(f"epoch {epoch + 1} replicas {self.replicas} loss {logs['loss']:.5f}", flush=True)
        with PROGRESS.open("a") as progress:
            progress.write(json.dumps(told) + "\n")
        (OUTPUT / "result.json").write_text(json.dumps({**told, "replicas": self.replicas}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    # Before anything else of TensorFlow: it opens the port on which the others wait.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    # All nodes are workers; the first one leads. Without TF_CONFIG there is only this one.
    leads = not strategy.cluster_resolver.task_id
    size = 32 * strategy.num_replicas_in_sync
    rows = tf.random.stateless_uniform((options.steps * size, 32), seed=(7, 7))
    labels = tf.cast(tf.reduce_sum(rows, axis=1) > 16, tf.int64)
    data = tf.data.Dataset.from_tensor_slices((rows, labels)).repeat().batch(size)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(2)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    # Keeps each epoch's state there, and goes on from it; every worker has its copy.
    kept = tf.keras.callbacks.BackupAndRestore(str(CHECKPOINTS / "backup"), delete_checkpoint=False)
    told = [Told(strategy.num_replicas_in_sync)] if leads else []
    model.fit(data, epochs=options.epochs, steps_per_epoch=options.steps, verbose=0, callbacks=[kept, *told])


if __name__ == "__main__":
    main()
