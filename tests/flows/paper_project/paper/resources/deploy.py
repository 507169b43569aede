# SPDX-License-Identifier: Apache-2.0
"""`pulumi up` writes the plan to a file, and runs draw on the desk. The platform has no images and no stand-in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pulumi
from components.paper.plan import PaperPlan

from components.plan.model import RunPlan
from components.plan.platform import Deployment
from components.plan.show import json_text
from components.runs import Run, RunProvider


def deploy(plan: PaperPlan, folder: Path) -> dict[str, Any]:
    if not pulumi.runtime.is_dry_run():
        (folder / plan.sheet).write_text(json_text(plan))
    provider = RunProvider("runs", {}) if plan.jobs else None
    options = pulumi.ResourceOptions(provider=provider, delete_before_replace=True)
    runs = {
        f"{name}/{key}": Run(f"{name}/{key}", run_inputs(plan, name, run, folder), options)
        for name, job in plan.jobs.items()
        for key, run in job.runs.items()
    }
    return {"sheet": plan.sheet, "desk": plan.desk, "states": {name: run.state for name, run in runs.items()}}


def run_inputs(plan: PaperPlan, job: str, run: RunPlan, folder: Path) -> dict[str, Any]:
    python = [sys.executable]
    return {
        "platform": plan.platform,
        "desk": plan.desk,
        "displayName": run.display_name,
        "tags": {**plan.tags, "stack": plan.stack, "job": job, "run": run.name},
        "nodes": [
            {"name": node.name, "role": node.role, "rank": node.rank, "arguments": python + node.launch["command"]}
            for node in run.nodes
        ],
        "until": run.until,
        "attempt": run.attempt,
    }


DEPLOYMENT = Deployment(deploy)
