# SPDX-License-Identifier: Apache-2.0
"""A new stack file for OCI: tenancy and region from Oracle's configuration file, or those of the local cloud."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.machines import machine_types_of
from components.oci.stack import is_ocid
from components.platform.config_files import ConfigProblemError, read_config_section
from components.platform.new_stacks import (
    OF_LOCAL_CLOUD,
    Answer,
    Caller,
    MachineNeeds,
    NewMachine,
    NewStacks,
    image_of_own,
    smallest_machine,
)
from localcloud.oci import fixed_names
from schemas.unfilled_values import PLACEHOLDER

_PROFILE = "DEFAULT"
_FLEXIBLE = "VM.Standard.E4.Flex"
# OCPUs of the flexible shape, GB of memory for each, and in all.
_MOST_OCPUS, _USUAL_MEMORY, _MOST_MEMORY_OF_EACH, _MOST_MEMORY = 64, 8, 64, 1024
_LEAST_DISK, _MOST_DISK = 100, 10240


class OciNewStacks(NewStacks):
    local_answers = (
        Answer("region", fixed_names.REGION, "oci:region"),
        Answer(
            "tenancy", fixed_names.TENANCY, "trainyard:tenancy", OF_LOCAL_CLOUD,
            unknown=f"ocid1.tenancy.oc1..{PLACEHOLDER}",
        ),
        Answer(
            "compartment", fixed_names.COMPARTMENT, "trainyard:compartment", OF_LOCAL_CLOUD,
            unknown=f"ocid1.compartment.oc1..{PLACEHOLDER}",
        ),
        Answer("group", fixed_names.USERS_GROUP, "trainyard:access", OF_LOCAL_CLOUD, unknown=PLACEHOLDER),
    )  # fmt: skip

    def answers_of_account(self, caller: Caller) -> tuple[Answer, ...]:
        variables = caller.environment
        named = variables.get("OCI_CONFIG_FILE") or variables.get("OCI_CLI_CONFIG_FILE")
        file = Path(named).expanduser() if named else caller.home / ".oci" / "config"
        profile = caller.profile or variables.get("OCI_CONFIG_PROFILE") or variables.get("OCI_CLI_PROFILE") or _PROFILE
        values = read_config_section(file, profile, is_named=profile != _PROFILE)
        if not values and not file.exists():
            return ()
        for key in ("tenancy", "region"):
            if not values.get(key):
                raise ConfigProblemError(f"{file}: the profile {profile} has no `{key}`")
        if not is_ocid(tenancy := values["tenancy"]):
            raise ConfigProblemError(f"{file}: `tenancy` of the profile {profile} is not an OCID")
        source = f"from {file}"
        of_region, of_tenancy, of_compartment, of_group = self.local_answers
        return (
            replace(of_region, value=values["region"], source=source),
            replace(of_tenancy, value=tenancy, source=source, unknown=None),
            replace(
                of_compartment,
                value=tenancy,
                source="the root compartment: replace it by the OCID of one for training",
                question="OCID of the compartment for everything that the stack makes",
            ),
            replace(
                of_group,
                source="a group of the tenancy whose members start runs: replace it by yours",
                question="Group of the people who start runs",
            ),
        )

    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        return {
            "oci:region": answers["region"],
            "trainyard:tenancy": answers["tenancy"],
            "trainyard:compartment": answers["compartment"],
            "trainyard:access": {"users": {"group": answers["group"]}},
        }

    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        disk = {"blockStorageGb": min(max(needs.disk_gb, _LEAST_DISK), _MOST_DISK)} if needs.disk_gb else {}
        if needs.gpus:
            rows = {name: row for name, row in machine_types_of("oci").items() if "accelerators" in row}
            shape, choice = smallest_machine(rows, needs)
            return NewMachine({"shape": shape, **disk}, rows[shape]["accelerators"], choice)
        # An OCPU is two CPUs.
        ocpus = max(1, math.ceil(needs.cpus / 2))
        memory = math.ceil(needs.memory_gb) or ocpus * _USUAL_MEMORY
        ocpus = max(ocpus, math.ceil(memory / _MOST_MEMORY_OF_EACH))
        size = {"ocpus": min(ocpus, _MOST_OCPUS), "memoryGb": min(max(memory, ocpus), _MOST_MEMORY)}
        too_much = f"{_FLEXIBLE} has {_MOST_OCPUS} OCPUs and {_MOST_MEMORY} GB at most"
        is_enough = ocpus <= _MOST_OCPUS and memory <= _MOST_MEMORY
        return NewMachine({"shape": {"name": _FLEXIBLE, **size}, **disk}, choice="" if is_enough else too_much)

    def choose_image(self, reference: str) -> tuple[str, str]:
        """Job runs pull from OCI's registry only, so an image of another one has to be pushed there."""
        host, _, _ = reference.partition("/")
        is_of_oci = ".ocir.io" in host or host.startswith("ocir.")
        return (reference, "") if is_of_oci else image_of_own(reference, "job runs pull from OCI's registry only")


NEW_STACKS = OciNewStacks()
