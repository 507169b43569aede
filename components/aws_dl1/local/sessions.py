# SPDX-License-Identifier: Apache-2.0
"""Clients of the AWS of a local cloud, in the name of one of its people."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.tables import table
from components.platform.local_cloud import LocalCloud
from components.platform.states import Row
from components.s3.session import Session

DEPLOYER, USER = "deployer", "user"
_PROVIDER = "pulumi:providers:aws"


def session_of(cloud: LocalCloud, profile: str, region: str) -> Session:
    """By the profile in the cloud's own configuration file."""
    return Session.of({"region": region}, cloud.env_for(profile))


def region_of(rows: Sequence[Row]) -> str:
    """The region of a stack, as its state says it."""
    for row in rows:
        region = (row.get("outputs") or {}).get("region") or (row.get("inputs") or {}).get("region")
        if region:
            return str(region)
    return regions()[0]


def regions() -> list[str]:
    """Those that have the machines."""
    return list(table("aws_dl1")["regions"])
