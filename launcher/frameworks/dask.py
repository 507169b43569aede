# SPDX-License-Identifier: Apache-2.0
"""Dask: the script runs beside the scheduler, as its client, once the workers are there."""

from __future__ import annotations

import http.client
import json

from launcher.document import Launch
from launcher.placeholders import Place

_SCHEDULER = "scheduler"
_COUNTS = "/json/counts.json"


def lacking(launch: Launch, place: Place) -> str:
    """Asks the scheduler's own page of counts how many workers have registered."""
    port = launch.ports.get("dashboard")
    if launch.role != _SCHEDULER or not launch.command or port is None or port.range is None:
        return ""
    wanted = sum(role.replicas for role in launch.roles if role.service) * int(launch.options.get("workers", 1))
    found = _workers(place.address, port.range[0])
    if found is None:
        return "the scheduler to serve"
    return "" if found >= wanted else f"Dask workers: {found} of {wanted} have registered with the scheduler"


def _workers(address: str, port: int) -> int | None:
    connection = http.client.HTTPConnection(address, port, timeout=2)
    try:
        connection.request("GET", _COUNTS)
        return int(json.loads(connection.getresponse().read())["workers"])
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    finally:
        connection.close()
