# SPDX-License-Identifier: Apache-2.0
"""What a node asks of a machine of a compute target, and how many of them its machines hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.model import Shape


@dataclass(frozen=True, slots=True)
class MachineShare:
    """OCPUs, memory and GPUs: of a whole machine, or of what a node asks of one."""

    ocpus: float
    memory_gb: float
    gpus: int

    def times_in(self, machine: MachineShare) -> int:
        """How many of them a machine holds. What the service itself takes of a machine, no document says."""
        pairs = ((machine.ocpus, self.ocpus), (machine.memory_gb, self.memory_gb), (machine.gpus, self.gpus))
        return min(int(there // wanted) for there, wanted in pairs if wanted)


def is_flexible(shape: Shape) -> bool:
    """Whether people choose its size."""
    return shape.name.endswith(".Flex")


def share_of(shape: Shape, shapes: Mapping[str, Mapping[str, Any]]) -> MachineShare | None:
    """The size that the shape gives, else that of the whole machine. None if the catalog does not know it."""
    row = shapes.get(shape.name, {})
    ocpus = shape.ocpus or row.get("vcpus", 0) / 2
    memory = shape.memory_gb or row.get("memory_gib", 0)
    return MachineShare(ocpus, memory, row.get("accelerators", 0)) if ocpus and memory else None
