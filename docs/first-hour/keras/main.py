# SPDX-License-Identifier: Apache-2.0
"""Keras on several workers: TF_CONFIG says who they are, the chief saves the model under /tmp."""

import json
import os

import numpy as np
import tensorflow as tf

BATCH_EACH = 64


def dataset(batch_size):
    chance = np.random.default_rng(7)
    images = chance.random((1024, 8, 8), dtype=np.float32)
    labels = (images[:, :4].sum(axis=(1, 2)) > images[:, 4:].sum(axis=(1, 2))).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1024).repeat().batch(batch_size)


def build_and_compile_model():
    model = tf.keras.Sequential([
        tf.keras.layers.Flatten(input_shape=(8, 8)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(2),
    ])  # fmt: skip
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.01),
        metrics=["accuracy"],
    )
    return model


def write_filepath(filepath, task_id):
    """Every worker has to save, but only what the chief saves counts."""
    return filepath if task_id == 0 else os.path.join("/tmp", f"workertemp_{task_id}", "model")


tf_config = json.loads(os.environ["TF_CONFIG"])
workers = len(tf_config["cluster"]["worker"])
task_id = tf_config["task"]["index"]

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    multi_worker_model = build_and_compile_model()

multi_worker_model.fit(dataset(BATCH_EACH * workers), epochs=2, steps_per_epoch=8, verbose=2)
multi_worker_model.save(write_filepath("/tmp/keras-model", task_id))
if task_id == 0:
    multi_worker_model.save_weights("weights.h5")
