# SPDX-License-Identifier: Apache-2.0
"""Tells Accelerate that there is no GPU, as `accelerate launch --cpu` does. Since 1.0 it needs to be told: otherwise
each process finds no device that it knows, and trains alone."""

from __future__ import annotations

from collections.abc import Mapping

from launcher.devices import Gpus
from launcher.document import Launch

_ON_PROCESSORS = "ACCELERATE_USE_CPU"


def variables(_: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """Sets the variable if there is no GPU, and if neither the job nor its image sets it."""
    return {} if _ON_PROCESSORS in environment or Gpus().readable else {_ON_PROCESSORS: "true"}
