# SPDX-License-Identifier: Apache-2.0
"""Stacks for OpenPAI that are made from something else. What a node needs is a SKU of the stack."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schemas.stack_frame import PLACEHOLDER, ChosenImage, ChosenMachine, MachineNeeds, StackFrame

_USUAL_MEMORY = 4


def cluster_config(_: Path) -> Mapping[str, Any]:
    return {
        "trainyard:platform": "openpai",
        "trainyard:cluster": {"uri": f"https://{PLACEHOLDER}.example.com", "user": PLACEHOLDER},
        # A task's own files end with it, and OpenPAI makes no registry.
        "trainyard:storage": {"name": PLACEHOLDER},
        "trainyard:registry": {"existing": f"registry.example.com/{PLACEHOLDER}"},
    }


def make_sku(needs: MachineNeeds) -> ChosenMachine:
    name = f"gpu{needs.gpus}" if needs.gpus else f"cpu{needs.cpus}"
    memory = math.ceil(needs.memory_gb) or max(1, needs.cpus) * _USUAL_MEMORY
    gpus = {"gpus": needs.gpus} if needs.gpus else {}
    return ChosenMachine(name, {"trainyard:skus": {name: {**gpus, "cpus": needs.cpus, "memoryGb": memory}}}, "")


def image_of_task(reference: str) -> ChosenImage:
    return ChosenImage(reference, "")


def no_more_keys(_: MachineNeeds) -> Mapping[str, Any]:
    return {}


STACK_FRAME = StackFrame(config=cluster_config, machine=make_sku, image=image_of_task, job=no_more_keys)
