# SPDX-License-Identifier: Apache-2.0
"""Whoever types a command: which cluster is meant, and whose token counts.

`config` is the stack file's configuration as it was written, with its secrets sealed. `cloud` is the local cloud, None
for a cluster of OpenPAI's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.openpai.client.session import Session
from components.platform.local_cloud import LocalCloud

CLUSTER_KEY = "trainyard:cluster"


def session_of_caller(
    config: Mapping[str, Any],
    cloud: LocalCloud | None,
    profile: str | None,
    place: str | None = None,
    folder: Path | None = None,
) -> Session:
    """`profile`: a user of the local cloud; OpenPAI has no profiles. `place`: the address of a portal, from a person.

    The stack's token is not meant for another portal. `folder`: where the stack file's paths start.
    """
    if cloud is not None:
        variables = cloud.env_for(profile) if profile else cloud.env_of_caller()
        return Session.of({"cluster": {"uri": cloud.endpoint}}, variables)
    written = config.get(CLUSTER_KEY)
    rows = written.items() if isinstance(written, Mapping) else ()
    cluster = {key: value for key, value in rows if isinstance(value, str)}
    if place and place.rstrip("/") != cluster.get("uri", "").rstrip("/"):
        return Session.of({"cluster": {"uri": place}})
    certificate = cluster.get("certificate")
    if certificate and folder is not None:
        certificate = str(folder / certificate)
    return Session.of({"cluster": cluster, "token": cluster.get("token"), "certificate": certificate})
