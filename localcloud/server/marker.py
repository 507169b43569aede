# SPDX-License-Identifier: Apache-2.0
"""The unsigned answer by which our clients recognise a local cloud. No real endpoint gives it."""

from __future__ import annotations

from catalog.version import VERSION
from localcloud.server.cloud import ServedCloud
from localcloud.server.http import Reply, Request

PATH = "/.trainyard"
CLOUD = "trainyard-local"


def answer(cloud: ServedCloud, request: Request) -> Reply:
    """The marker, for everybody on this machine. Web pages of other host names get nothing, and nodes only the part by
    which they recognise the cloud."""
    if request.of_a_node:
        return Reply(200, {"cloud": CLOUD, "version": VERSION})
    if not is_for_this_machine(request, cloud.endpoint):
        return Reply(403, {"message": "the marker answers to 127.0.0.1 and localhost only"})
    return Reply(200, {"cloud": CLOUD, "version": VERSION, **cloud.facts})


def is_for_this_machine(request: Request, endpoint: str) -> bool:
    """Whether the Host header names this machine, and not a name that merely resolves to it."""
    port = endpoint.rpartition(":")[2]
    return "host" not in request.repeated and request.headers.get("host") in (f"127.0.0.1:{port}", f"localhost:{port}")
