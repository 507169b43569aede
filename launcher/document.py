# SPDX-License-Identifier: Apache-2.0
"""Reads the launch document (schemas/launch.schema.json) that the platform put into the environment."""

import json
from dataclasses import dataclass
from typing import Any

VARIABLE = "TRAINYARD_LAUNCH"
VERSION = 1


class LaunchError(Exception):
    """The node cannot start; the text says why and what to do."""


@dataclass(frozen=True)
class Launch:
    run: str
    node: str
    rank: int
    nodes: int
    role: str
    start: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]


def read(environment: dict[str, str]) -> Launch:
    text = environment.get(VARIABLE)
    if not text:
        raise LaunchError(f"{VARIABLE} is not set: start this image through a trainyard job, or give it a command")
    try:
        document: dict[str, Any] = json.loads(text)
        if document["version"] != VERSION:
            raise LaunchError(
                f"{VARIABLE} has version {document['version']}, this image reads {VERSION}: build the image anew"
            )
        rank = document["rank"] if document["rank"] is not None else int(environment["NODE_RANK"])
        return Launch(
            run=f"{document['job']}/{document['run']}",
            node=document["node"],
            rank=rank,
            nodes=sum(role["replicas"] for role in document["roles"]),
            role=document["role"],
            start=tuple(document["start"]),
            command=tuple(document["command"]),
            environment=dict(document["environment"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LaunchError(f"{VARIABLE} is not a launch document: {error!r}") from None
