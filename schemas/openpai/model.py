# SPDX-License-Identifier: Apache-2.0
"""The Stack of OpenPAI: everybody's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from schemas.model import Stack

VARIABLES = {
    "PAI_": "OpenPAI sets it: a task knows itself and the others by it",
    "FC_": "OpenPAI's controller sets it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaiStack(Stack):
    variables: ClassVar[Mapping[str, str]] = VARIABLES
