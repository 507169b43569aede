# SPDX-License-Identifier: Apache-2.0
"""What runs, and what stands between them, can cost more."""

from __future__ import annotations

from typing import Any

from tests.support.silence import SilentChange


def _job_on_a_compute_target(document: dict[str, Any]) -> None:
    """As docs/production.md has it."""
    config = document["config"]
    config["trainyard:computeTargets"] = {"pool": {"shape": "VM.GPU.A10.1", "instances": 4}}
    config["trainyard:jobs"]["resnet"].update(computeTarget="pool", layout="node-groups")


CHANGES = (
    SilentChange(
        number=6,
        title="a compute target with node groups grows",
        before=_job_on_a_compute_target,
        change=lambda document: document["config"]["trainyard:computeTargets"]["pool"].update(instances=400),
        shows=("compute target pool: 400 machines of VM.GPU.A10.1: $800.00 an hour while the stack is up",),
    ),
)
