# SPDX-License-Identifier: Apache-2.0
"""Clients of a local cloud, in the name of one of its people."""

from __future__ import annotations

from components.oci.client.session import Session, host_overrides
from components.platform.local_cloud import LocalCloud

DEPLOYER, USER = "deployer", "user"


def session_of(cloud: LocalCloud, profile: str) -> Session:
    """By the profile in the cloud's own configuration file."""
    return Session(profile=profile, config_file=str(cloud.config_file), endpoints=host_overrides(cloud.env))
