# SPDX-License-Identifier: Apache-2.0
"""A new stack file for OCI: tenancy and region from Oracle's configuration file, or those of the local cloud."""

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
from localcloud.oci import fixed_names

_USUAL_GPUS = ("VM.GPU.A10.1", "VM.GPU.A10.2", "BM.GPU.A10.4", "BM.GPU.A100-v2.8")
_SMALL = {"name": "VM.Standard.E4.Flex", "ocpus": 2, "memoryGb": 16}
_LOCAL = "of the local cloud"
# A configuration file has a few lines for each profile.
_LARGEST = 1_000_000
_NEEDED = ("tenancy", "region")


class ConfigProblemError(Exception):
    """Oracle's configuration file cannot be used. The text is for its user, and has no value of the file."""


class OciNewStacks(NewStacks):
    def find_answers(self, caller: Caller) -> Answers:
        if not caller.local:
            try:
                if profile := _read_profile(caller):
                    return Answers(_answers_of_profile(profile, _config_file(caller)))
                problem = ""
            except ConfigProblemError as error:
                problem = str(error)
        else:
            problem = ""
        return Answers(
            (
                Answer("region", fixed_names.REGION, "oci:region"),
                Answer("tenancy", fixed_names.TENANCY, "trainyard:tenancy", _LOCAL),
                Answer("compartment", fixed_names.COMPARTMENT, "trainyard:compartment", _LOCAL),
                Answer("group", fixed_names.USERS_GROUP, "trainyard:access", _LOCAL),
            ),
            problem,
            local=True,
        )

    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        return {
            "oci:region": answers["region"],
            "trainyard:tenancy": answers["tenancy"],
            "trainyard:compartment": answers["compartment"],
            "trainyard:access": {"users": {"group": answers["group"]}},
        }

    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        if not needs.gpus:
            comment = "With a GPU: `shape: VM.GPU.A10.1`, and `options: { processes: 1 }`, one process a GPU."
            return NewMachine({"shape": _SMALL}, needs.processes or 1, comment)
        rows = machine_types_of("oci")
        shape = smallest_machine(_USUAL_GPUS, rows, needs)
        return NewMachine({"shape": shape}, processes_on(rows[shape], needs))


def _answers_of_profile(profile: Mapping[str, str], file: Path) -> tuple[Answer, ...]:
    tenancy = profile["tenancy"]
    return (
        Answer("region", profile["region"], "oci:region", f"from {file}"),
        Answer("tenancy", tenancy, "trainyard:tenancy", f"from {file}"),
        Answer(
            "compartment",
            tenancy,
            "trainyard:compartment",
            "the root compartment: replace it by the OCID of one for training",
            "OCID of the compartment for everything that the stack makes",
        ),
        Answer(
            "group",
            fixed_names.USERS_GROUP,
            "trainyard:access",
            "a group of the tenancy whose members start runs: replace it by yours",
            "Group of the people who start runs",
        ),
    )


def _config_file(caller: Caller) -> Path:
    named = caller.environment.get("OCI_CONFIG_FILE") or caller.environment.get("OCI_CLI_CONFIG_FILE")
    return Path(named).expanduser() if named else caller.home / ".oci" / "config"


def _read_profile(caller: Caller) -> Mapping[str, str] | None:
    """The caller's profile; None if there is no file. No key is read: the file only names it."""
    file, variables = _config_file(caller), caller.environment
    profile = caller.profile or variables.get("OCI_CONFIG_PROFILE") or variables.get("OCI_CLI_PROFILE") or "DEFAULT"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        if not file.exists():
            if caller.profile:
                raise ConfigProblemError(f"{file} does not exist, so it has no profile {profile}")
            return None
        with file.open(encoding="utf-8-sig") as content:
            parser.read_string(content.read(_LARGEST))
    except OSError as error:
        raise ConfigProblemError(f"{file} cannot be read: {error.strerror}") from error
    except (configparser.Error, ValueError) as error:
        # The error of a parser quotes the line, which may be a passphrase.
        line = getattr(error, "lineno", None)
        raise ConfigProblemError(f"{file}{f':{line}' if line else ''}: this is not a configuration file") from None
    if profile != "DEFAULT" and not parser.has_section(profile):
        raise ConfigProblemError(f"{file} has no profile {profile}")
    values = dict(parser[profile])
    for key in _NEEDED:
        if not values.get(key, "").strip():
            raise ConfigProblemError(f"{file}: the profile {profile} has no `{key}`")
    return {key: values[key].strip() for key in _NEEDED}


NEW_STACKS = OciNewStacks()
