"""MultiWorkerMirroredStrategy with the data set that Keras brings."""

import os

import keras
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


def mnist_dataset(batch_size):
    (x_train, y_train), _ = keras.datasets.mnist.load_data()
    x_train = (x_train / 255.0).astype("float32")
    y_train = y_train.astype("int64")
    return tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(60000).repeat().batch(batch_size)


def build_model():
    model = tf.keras.Sequential(
        [
            tf.keras.Input(shape=(28, 28)),
            tf.keras.layers.Reshape(target_shape=(28, 28, 1)),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.001),
        metrics=["accuracy"],
    )
    return model


per_worker_batch_size = 64
dataset = mnist_dataset(per_worker_batch_size * strategy.num_replicas_in_sync)
with strategy.scope():
    model = build_model()
model.fit(dataset, epochs=3, steps_per_epoch=70)
if os.environ.get("TF_CONFIG", "").find('"index": 0') >= 0:
    model.save_weights("mnist.weights.h5")
