# SPDX-License-Identifier: Apache-2.0
"""The environment variables that lead AWS's clients to this cloud, with the credentials of a user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from localcloud.aws import account


def client_variables(home: Path, endpoint: str, profile: str) -> dict[str, str]:
    """The variables for AWS's clients. `~/.aws` is neither read nor written."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_CONFIG_FILE": str(account.config_file(home)),
        "AWS_SHARED_CREDENTIALS_FILE": str(account.credentials_file(home)),
        "AWS_PROFILE": profile,
        # A user's machine has no metadata service, so clients must not wait for one.
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def profile_of_caller(home: Path, environment: Mapping[str, str]) -> str | None:
    """The profile of this cloud's credentials file that an environment names; None if it uses another file."""
    ours = environment.get("AWS_SHARED_CREDENTIALS_FILE") == str(account.credentials_file(home))
    return environment.get("AWS_PROFILE") if ours else None
