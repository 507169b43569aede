# SPDX-License-Identifier: Apache-2.0
import numpy as np
from tensorflow import keras

model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(np.ones((8, 2)), np.ones((8, 1)))
