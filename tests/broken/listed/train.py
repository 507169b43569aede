# SPDX-License-Identifier: Apache-2.0
import einops  # type: ignore[import-not-found]
import numpy
import wandb  # type: ignore[import-not-found]

print(numpy, einops, wandb)
