# SPDX-License-Identifier: Apache-2.0
"""Whoever types a command: whose credentials count.

`config` is the stack file's configuration as it was written. `cloud` is the local cloud, None for AWS's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.platform.local_cloud import LocalCloud
from components.s3.session import Session

REGION_KEY = "aws:region"
PROFILE_KEY = "aws:profile"
# Where S3 is not Amazon's own.
ENDPOINT_KEY = "aws:endpoint"


def session_of_caller(config: Mapping[str, Any], cloud: LocalCloud | None, profile: str | None) -> Session:
    """`profile` is what the caller asked for. Without it the stack file's counts, then that of every client."""
    region = config.get(REGION_KEY)
    if cloud is not None:
        return Session.of({"region": region, "profile": profile}, cloud.env_of_caller())
    where = {"region": region, "endpoint": config.get(ENDPOINT_KEY)}
    return Session.of({**where, "profile": profile or config.get(PROFILE_KEY)})
