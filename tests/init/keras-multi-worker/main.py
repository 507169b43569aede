# SPDX-License-Identifier: Apache-2.0
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(np.random.rand(32, 3), np.random.rand(32, 1), verbose=2)
