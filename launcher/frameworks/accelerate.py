# SPDX-License-Identifier: Apache-2.0
"""Where there is no GPU, Accelerate since 1.0 has to be told, as `accelerate launch --cpu` does. Otherwise each process
finds no device that it knows, and trains alone."""

from __future__ import annotations

from collections.abc import Mapping

from launcher.activity import Gpus
from launcher.document import Launch

_ON_PROCESSORS = "ACCELERATE_USE_CPU"


def variables(_: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """What the job or its image says counts."""
    return {} if _ON_PROCESSORS in environment or Gpus().readable else {_ON_PROCESSORS: "true"}
