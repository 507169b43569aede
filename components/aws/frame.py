# SPDX-License-Identifier: Apache-2.0
"""Stacks for AWS that are made from something else. A machine comes from the catalog's rows."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.tables import table
from schemas.name_suggestions import count_noun
from schemas.stack_frame import NO_ACCOUNT, PLACEHOLDER, ChosenImage, ChosenMachine, MachineNeeds, StackFrame


def aws_stack_config(home: Path) -> Mapping[str, Any]:
    return {
        "aws:region": os.environ.get("AWS_REGION") or _configured_region(home) or "us-east-1",
        "trainyard:platform": "aws",
        "trainyard:account": NO_ACCOUNT,
        "trainyard:access": {"mode": "least-privilege", "users": {"group": PLACEHOLDER}},
    }


def _configured_region(home: Path) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    profile = os.environ.get("AWS_PROFILE")
    try:
        parser.read_string((home / ".aws" / "config").read_text("utf-8"))
        return parser.get(f"profile {profile}" if profile else "default", "region", fallback="")
    except (OSError, UnicodeError, configparser.Error):
        return ""


def choose_instance_type(needs: MachineNeeds) -> ChosenMachine:
    """The smallest machine that has all of it."""
    machines: Mapping[str, Mapping[str, Any]] = table("aws_machines")["machines"]
    kind = "nvidia" if needs.gpus else "none"
    enough = {
        name: row
        for name, row in machines.items()
        if row.get("accelerator") == kind
        and row.get("accelerators", 0) >= needs.gpus
        and row["vcpus"] >= (1 if needs.gpus else needs.cpus)
    }
    named = {name: row for name, row in enough.items() if needs.gpu and needs.gpu.strip() == row.get("model")}
    choices = named or enough or {name: row for name, row in machines.items() if row.get("accelerator") == kind}
    name = min(choices, key=lambda name: (choices[name].get("accelerators", 0), choices[name]["vcpus"], name))
    if not needs.gpus or named:
        return ChosenMachine(name, {}, "")
    why = f"no machine has {needs.gpus} {needs.gpu.strip()}" if needs.gpu else "nothing says which GPU it is"
    return ChosenMachine(name, {}, f"{name} is the smallest machine with {count_noun(needs.gpus, 'GPU')}, and {why}")


def image_as_named(reference: str) -> ChosenImage:
    return ChosenImage(reference, "")


def cluster_of_job(needs: MachineNeeds) -> Mapping[str, Any]:
    disk = {"blockStorageGb": needs.disk_gb} if needs.disk_gb else {}
    return {**disk, "cluster": {"ami": "nvidia" if needs.gpus else "none", "stopWhenIdle": 10}}


STACK_FRAME = StackFrame(
    config=aws_stack_config, machine=choose_instance_type, image=image_as_named, job=cluster_of_job
)
