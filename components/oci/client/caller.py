# SPDX-License-Identifier: Apache-2.0
"""Whoever types a command: whose credentials count, and which compartment is meant.

`config` is the stack file's configuration as it was written. `cloud` is the local cloud, None for OCI's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.oci.client.session import Session
from components.platform.local_cloud import LocalCloud

REGION_KEY = "oci:region"
PROFILE_KEY = "oci:configFileProfile"
COMPARTMENT_KEY = "trainyard:compartment"


def session_of_caller(config: Mapping[str, Any], cloud: LocalCloud | None, profile: str | None) -> Session:
    """`profile` is what the caller asked for. Without it the stack file's counts, then that of every client."""
    if cloud is not None:
        return Session.of({"profile": profile}, cloud.env_of_caller())
    return Session.of({"region": config.get(REGION_KEY), "profile": profile or config.get(PROFILE_KEY)})


def compartment_of_caller(config: Mapping[str, Any], cloud: LocalCloud | None, place: str | None = None) -> str:
    """`place` is what the caller named. Empty where nobody says."""
    if place:
        return place
    return cloud.compartment if cloud is not None else str(config.get(COMPARTMENT_KEY) or "")
