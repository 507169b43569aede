# SPDX-License-Identifier: Apache-2.0
"""Stacks for OCI that are made from something else: tenancy and region come from ~/.oci/config, and a machine from the
catalog's shapes."""

from __future__ import annotations

import configparser
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.tables import table
from components.oci.stack import is_ocid
from schemas.name_suggestions import count_noun
from schemas.stack_frame import PLACEHOLDER, ChosenImage, ChosenMachine, MachineNeeds, StackFrame

_CONFIG_VARIABLE, _PROFILE_VARIABLE = "OCI_CLI_CONFIG_FILE", "OCI_CLI_PROFILE"
_FLEXIBLE = "VM.Standard.E5.Flex"
# OCPUs of a flexible shape, and GB of memory for each.
_MOST_OCPUS, _MOST_MEMORY, _USUAL_MEMORY = 94, 64, 8
_LEAST_DISK, _MOST_DISK = 100, 10240


def oci_stack_config(home: Path) -> Mapping[str, Any]:
    """The tenancy's root compartment is a place where every stack may be made; most want another."""
    settings = _oci_settings(home)
    tenancy = settings.get("tenancy", "")
    named = tenancy if is_ocid(tenancy) else f"ocid1.tenancy.oc1..{PLACEHOLDER}"
    return {
        "oci:region": settings.get("region") or "us-ashburn-1",
        "trainyard:tenancy": named,
        "trainyard:compartment": f"ocid1.compartment.oc1..{PLACEHOLDER}",
        "trainyard:access": {"mode": "least-privilege", "users": {"group": PLACEHOLDER}},
    }


def _oci_settings(home: Path) -> Mapping[str, str]:
    """The profile of ~/.oci/config. Empty if there is none that can be read."""
    file = Path(os.environ.get(_CONFIG_VARIABLE) or home / ".oci" / "config")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(file.read_text("utf-8"))
        return dict(parser[os.environ.get(_PROFILE_VARIABLE) or "DEFAULT"])
    except (OSError, UnicodeError, configparser.Error, KeyError):
        return {}


def choose_shape(needs: MachineNeeds) -> ChosenMachine:
    """The cheapest shape that has all of it, or a flexible one where no GPU is asked for."""
    if not needs.gpus:
        ocpus = min(_MOST_OCPUS, max(1, math.ceil(needs.cpus / 2)))
        memory = math.ceil(needs.memory_gb) or ocpus * _USUAL_MEMORY
        ocpus = min(_MOST_OCPUS, max(ocpus, math.ceil(memory / _MOST_MEMORY)))
        shape = {"name": _FLEXIBLE, "ocpus": ocpus, "memoryGb": min(max(memory, ocpus), ocpus * _MOST_MEMORY)}
        return ChosenMachine(shape, {}, "")
    shapes: Mapping[str, Mapping[str, Any]] = table("shapes")
    enough = {name: row for name, row in shapes.items() if row.get("accelerators", 0) >= needs.gpus}
    named = {name: row for name, row in enough.items() if needs.gpu and needs.gpu in f"{row['accelerator']} "}
    choices = named or enough or {name: row for name, row in shapes.items() if row.get("accelerators", 0) >= 8}
    name = min(choices, key=lambda name: (choices[name]["accelerators"], choices[name]["usd_per_hour"], name))
    if needs.gpu and not named:
        why = f"no shape has {needs.gpus} accelerators called {needs.gpu.strip()}"
    elif needs.gpu:
        return ChosenMachine(name, {}, "")
    else:
        why = "nothing says which GPU it is"
    return ChosenMachine(name, {}, f"{name} is the cheapest shape with {count_noun(needs.gpus, 'GPU')}, and {why}")


def image_in_registry(reference: str) -> ChosenImage:
    """Job runs pull from OCI's registry only, so an image of another one has to be pushed there."""
    host, _, _ = reference.partition("/")
    if ".ocir.io" in host or host.startswith("ocir."):
        return ChosenImage(reference, "")
    tag = "-".join(reference.partition("@")[0].rpartition("/")[2].split(":"))
    return ChosenImage(
        f"${{registry}}:{tag}", f"job runs pull from OCI's registry only: build an image that begins with {reference}"
    )


def disk_of_job(needs: MachineNeeds) -> Mapping[str, Any]:
    return {"blockStorageGb": min(max(needs.disk_gb, _LEAST_DISK), _MOST_DISK)} if needs.disk_gb else {}


STACK_FRAME = StackFrame(config=oci_stack_config, machine=choose_shape, image=image_in_registry, job=disk_of_job)
