# SPDX-License-Identifier: Apache-2.0
"""A new stack file for AWS: the region from AWS's configuration file, or the local cloud's."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.machines import machine_types_of
from components.platform.new_stacks import (
    Answer,
    Answers,
    Caller,
    MachineNeeds,
    NewMachine,
    NewStacks,
    processes_on,
    smallest_machine,
)
from localcloud.aws import account

_USUAL_GPUS = ("g6.xlarge", "g6.12xlarge", "g6.48xlarge")
_SMALL = "c7i.2xlarge"
_LARGEST = 1_000_000
_GROUP = "scientists"


class AwsNewStacks(NewStacks):
    def find_answers(self, caller: Caller) -> Answers:
        region, source, number, problem = "", "", "", ""
        if not caller.local:
            region, source, number, problem = _read_settings(caller)
        if not region:
            return Answers(
                (
                    Answer("region", account.REGION, "aws:region"),
                    Answer("account", account.ACCOUNT, "trainyard:account", "of the local cloud"),
                    Answer("group", _GROUP, "trainyard:access", "of the local cloud"),
                ),
                problem,
                local=True,
            )
        group = Answer(
            "group",
            _GROUP,
            "trainyard:access",
            "an IAM group whose members start runs: replace it by yours",
            "Group of the people who start runs",
        )
        known = (Answer("account", number, "trainyard:account", source),) if number else ()
        return Answers((Answer("region", region, "aws:region", source), *known, group))

    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        own = {"trainyard:account": answers["account"]} if answers.get("account") else {}
        return {
            "aws:region": answers["region"],
            "trainyard:platform": "aws",
            **own,
            "trainyard:access": {"users": {"group": answers["group"]}},
        }

    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        if not needs.gpus:
            comment = "With a GPU: `shape: g6.xlarge`, and `ami: nvidia` under `cluster`."
            return NewMachine({"shape": _SMALL, "cluster": {"ami": "none"}}, needs.processes or 1, comment)
        rows = machine_types_of("aws-dl1")
        shape = smallest_machine(_USUAL_GPUS, rows, needs)
        return NewMachine({"shape": shape, "cluster": {"ami": "nvidia"}}, processes_on(rows[shape], needs))


def _read_settings(caller: Caller) -> tuple[str, str, str, str]:
    """Region, its source and the account, if AWS's variables or configuration file say them; or the problem."""
    variables = caller.environment
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if variables.get(name):
            return variables[name], f"from {name}", "", ""
    profile = caller.profile or variables.get("AWS_PROFILE") or "default"
    file = Path(variables.get("AWS_CONFIG_FILE") or caller.home / ".aws" / "config").expanduser()
    parser = configparser.ConfigParser(interpolation=None)
    try:
        if not file.exists():
            return "", "", "", f"{file} does not exist, so it has no profile {profile}" if caller.profile else ""
        with file.open(encoding="utf-8-sig") as content:
            parser.read_string(content.read(_LARGEST))
    except OSError as error:
        return "", "", "", f"{file} cannot be read: {error.strerror}"
    except (configparser.Error, ValueError):
        # The error of a parser quotes the line, which may be a key.
        return "", "", "", f"{file} is not a configuration file"
    section = profile if profile == "default" else f"profile {profile}"
    if not parser.has_section(section):
        return "", "", "", f"{file} has no profile {profile}" if caller.profile or profile != "default" else ""
    values = parser[section]
    region = values.get("region", "").strip()
    problem = "" if region else f"{file}: the profile {profile} has no `region`"
    return region, f"from {file}", values.get("sso_account_id", "").strip(), problem


NEW_STACKS = AwsNewStacks()
