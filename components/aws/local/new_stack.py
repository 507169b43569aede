# SPDX-License-Identifier: Apache-2.0
"""A new stack file for AWS: region and account from AWS's configuration file, or those of the local cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.machines import machine_types_of
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
from localcloud.aws import account
from schemas.unfilled_values import PLACEHOLDER


class AwsNewStacks(NewStacks):
    local_answers = (
        Answer("region", account.REGION, "aws:region"),
        Answer("account", account.ACCOUNT, "trainyard:account", OF_LOCAL_CLOUD, unknown=""),
        Answer("group", "scientists", "trainyard:access", OF_LOCAL_CLOUD, unknown=PLACEHOLDER),
    )

    def answers_of_account(self, caller: Caller) -> tuple[Answer, ...]:
        variables = caller.environment
        variable = next((name for name in ("AWS_REGION", "AWS_DEFAULT_REGION") if variables.get(name)), "")
        profile = caller.profile or variables.get("AWS_PROFILE") or "default"
        file = Path(variables.get("AWS_CONFIG_FILE") or caller.home / ".aws" / "config").expanduser()
        section = profile if profile == "default" else f"profile {profile}"
        # A profile may be in the file of credentials only, if a variable has the region.
        values = read_config_section(file, section, is_named=section != "default" and not variable)
        region = variables.get(variable) or values.get("region", "")
        if not region and values:
            raise ConfigProblemError(f"{file}: the profile {profile} has no `region`")
        if not region:
            return ()
        of_region, of_account, of_group = self.local_answers
        return (
            replace(of_region, value=region, source=f"from {variable or file}"),
            replace(of_account, value=values.get("sso_account_id", ""), source=f"from {file}", unknown=None),
            replace(
                of_group,
                source="an IAM group whose members start runs: replace it by yours",
                question="Group of the people who start runs",
            ),
        )

    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        return {
            "aws:region": answers["region"],
            "trainyard:platform": "aws",
            **({"trainyard:account": answers["account"]} if answers["account"] else {}),
            "trainyard:access": {"users": {"group": answers["group"]}},
        }

    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        # Scripts that ask for GPUs mean CUDA.
        kind = "nvidia" if needs.gpus else "none"
        rows = {name: row for name, row in machine_types_of("aws-dl1").items() if row["accelerator"] == kind}
        shape, choice = smallest_machine(rows, needs)
        disk = {"blockStorageGb": needs.disk_gb} if needs.disk_gb else {}
        job = {"shape": shape, **disk, "cluster": {"ami": kind}}
        return NewMachine(job, rows[shape].get("accelerators", 0), choice)

    def choose_image(self, reference: str) -> tuple[str, str]:
        """The network has no way to other registries, and may have none to the internet."""
        is_of_aws = ".dkr.ecr." in reference.partition("/")[0]
        return (reference, "") if is_of_aws else image_of_own(reference, "nodes reach AWS's registry only")


NEW_STACKS = AwsNewStacks()
