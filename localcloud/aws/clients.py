# SPDX-License-Identifier: Apache-2.0
"""The environment variables that tell AWS's clients where this cloud is, and who they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from localcloud.aws import account


def client_variables(home: Path, endpoint: str, profile: str) -> dict[str, str]:
    """What leads every AWS client to this cloud. `~/.aws` is neither read nor written."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_CONFIG_FILE": str(account.config_file(home)),
        "AWS_SHARED_CREDENTIALS_FILE": str(account.credentials_file(home)),
        "AWS_PROFILE": profile,
        # No machine of people has a metadata service: a client must not wait for one.
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def profile_of_caller(home: Path, environment: Mapping[str, str]) -> str | None:
    """The profile that an environment names in this cloud's credentials. One of the caller's own file is none."""
    ours = environment.get("AWS_SHARED_CREDENTIALS_FILE") == str(account.credentials_file(home))
    return environment.get("AWS_PROFILE") if ours else None
