# SPDX-License-Identifier: Apache-2.0
"""The profile of ~/.oci/config that Oracle's clients would use, read without their SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from components.platform.config_files import ConfigProblemError, read_config_section

_FILE_VARIABLES = ("OCI_CONFIG_FILE", "OCI_CLI_CONFIG_FILE")
_PROFILE_VARIABLES = ("OCI_CONFIG_PROFILE", "OCI_CLI_PROFILE")
_USUAL_PROFILE = "DEFAULT"


@dataclass(frozen=True, slots=True)
class OciProfile:
    """`values` may have a passphrase."""

    file: Path
    name: str
    values: Mapping[str, str] = field(repr=False)


def read_oci_profile(environment: Mapping[str, str], home: Path, profile: str | None = None) -> OciProfile | None:
    """The profile with this name, or that of the environment. None if there is no file and nobody named a profile.

    It has a tenancy and a region. Raises ConfigProblemError."""
    named = next(filter(None, map(environment.get, _FILE_VARIABLES)), None)
    file = Path(named).expanduser() if named else home / ".oci" / "config"
    profile = profile or next(filter(None, map(environment.get, _PROFILE_VARIABLES)), _USUAL_PROFILE)
    values = read_config_section(file, profile, profile != _USUAL_PROFILE)
    if not values and not file.exists():
        return None
    for key in ("tenancy", "region"):
        if not values.get(key):
            raise ConfigProblemError(f"{file}: the profile {profile} has no `{key}`")
    return OciProfile(file, profile, values)
