# SPDX-License-Identifier: Apache-2.0
"""Clients of the OpenPAI of a local cloud, in the name of one of its users."""

from __future__ import annotations

from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.session import Session
from components.platform.local_cloud import LocalCloud

DEPLOYER, USER = "deployer", "user"


def session_of(cloud: LocalCloud, user: str = DEPLOYER) -> Session:
    """By the variables that lead every client there."""
    return Session.of({}, cloud.env_for(user))


def runs_of(cloud: LocalCloud, user: str = DEPLOYER) -> OpenPaiRunPlatform:
    return OpenPaiRunPlatform(session_of(cloud, user))
