# SPDX-License-Identifier: Apache-2.0
"""The unsigned answer by which our clients recognize a local cloud. No real endpoint gives it."""

from __future__ import annotations

import ipaddress

from catalog.version import VERSION
from localcloud.api import tenancy
from localcloud.api.http import Reply, Request
from localcloud.api.operations import LocalCloud
from localcloud.aws import account

PATH = "/.trainyard"
CLOUD = "trainyard-local"


def answer(cloud: LocalCloud, request: Request) -> Reply:
    """For people of this machine; a node learns what it talks to, and no more. A page of another site reaches this
    port by a name of its own that leads to this machine, so only names of this machine's own are answered."""
    if request.of_a_node:
        return Reply(200, {"cloud": CLOUD, "version": VERSION})
    host = request.headers.get("host", "").rpartition(":")[0]
    if host != "localhost" and not _is_loopback(host):
        return Reply(403, {"code": "NotForOthers", "message": "this is told to loopback addresses only"})
    return Reply(200, marker(cloud))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def marker(cloud: LocalCloud) -> dict[str, str]:
    return {
        "cloud": CLOUD,
        "version": VERSION,
        "home": str(cloud.home),
        "region": tenancy.REGION,
        "tenancy": tenancy.TENANCY,
        "compartment": tenancy.COMPARTMENT,
        "namespace": tenancy.NAMESPACE,
        "awsAccount": account.ACCOUNT,
        "awsRegion": account.REGION,
        "openpaiUri": cloud.endpoint,
    }
