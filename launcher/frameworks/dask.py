# SPDX-License-Identifier: Apache-2.0
"""Dask: the script runs beside the scheduler, as its client, once the workers are there."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping

from launcher import placeholders
from launcher.document import Launch
from launcher.placeholders import Place

_SCHEDULER = "scheduler"
_PAGES = "--dashboard-address"
_COUNTS = "/json/counts.json"
# The catalog's variable with the address of XGBoost's tracker, and the key of Dask's configuration that XGBoost reads.
_TRACKER, _XGBOOST = "TRAINYARD_TRACKER", "DASK_XGBOOST__SCHEDULER_ADDRESS"


def variables(launch: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """The port of XGBoost's tracker, which is random otherwise, unless the job or its image sets it."""
    return {_XGBOOST: environment[_TRACKER]} if _TRACKER in environment and _XGBOOST not in environment else {}


def waits_for(launch: Launch, place: Place) -> str:
    """The workers that the command still waits for. The scheduler's page of counts says how many have registered."""
    port = _page_port(launch, place)
    if launch.role != _SCHEDULER or not launch.command or not port:
        return ""
    wanted = sum(role.replicas for role in launch.roles if role.service) * int(launch.options.get("workers", 1))
    found = _registered_workers(place.address, port)
    if found is None:
        return "the scheduler to serve"
    return "" if found >= wanted else f"Dask workers: {found} of {wanted} have registered with the scheduler"


def _page_port(launch: Launch, place: Place) -> int:
    """The port of the scheduler's pages, from its command line. It serves them even if the firewall closes them."""
    words = list(launch.start)
    if _PAGES not in words[:-1]:
        return 0
    page = words[words.index(_PAGES) + 1]
    port = placeholders.fill_placeholders(page, placeholders.node_values(launch, place), "start").rpartition(":")[2]
    return int(port) if port.isdigit() else 0


def _registered_workers(address: str, port: int) -> int | None:
    connection = http.client.HTTPConnection(address, port, timeout=2)
    try:
        connection.request("GET", _COUNTS)
        return int(json.loads(connection.getresponse().read())["workers"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        connection.close()
