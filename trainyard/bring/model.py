# SPDX-License-Identifier: Apache-2.0
"""What a reader makes of a file: a job, and what the rest of the stack needs for it. Nothing of a platform."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.tables import table
from components.platform.new_stacks import MachineNeeds

# As long as a run may take, where a file sets no limit.
LONGEST_MINUTES = 30 * 24 * 60
_LONGEST_NAME = 30
_NO_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class BroughtJob:
    """`keys`: those of a job in a stack file, without image and shape. `image` as the source names it, or empty.

    `config`: more keys of the stack. `network`: of `trainyard:network`. `script`: what a folder of code must have.
    `platform`: where it ran, if a stack may run there, too.
    """

    name: str
    keys: Mapping[str, Any]
    needs: MachineNeeds
    image: str = ""
    image_line: int = 0
    machine_line: int = 0
    script: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    platform: str = ""


def name_for_stack(text: str, otherwise: str = "job") -> str:
    """A text as a name of the stack file: lowercase letters, digits and hyphens, beginning with a letter."""
    name = _NO_NAME.sub("-", text.lower()).strip("-")
    if not name:
        return otherwise
    name = name if name[0].isalpha() else f"{otherwise}-{name}"
    name = name[:_LONGEST_NAME].strip("-")
    return f"{name}-{otherwise}" if name == "secure" else name


def gpu_named_in(text: str) -> str:
    """The accelerator that a label, partition or type of machine names, as the catalog calls it; empty if none."""
    known: Mapping[str, str] = table("bring/slurm")["gpus"]
    words = text.lower()
    return next((gpu for word, gpu in known.items() if re.search(rf"(?<![a-z0-9]){word}(?![a-z0-9])", words)), "")
