# SPDX-License-Identifier: Apache-2.0
"""Limits: the services, their limits, and how much of each is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localcloud.oci import limits, tenancy
from localcloud.oci.errors import not_found
from localcloud.oci.limits import Limit
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.paging import plain_page
from localcloud.server.errors import invalid
from localcloud.server.http import Reply

SERVICE = "limits"
VERSION = "/20190729"
_SCOPE = "REGION"


def _page(call: ApiCall, items: Sequence[Any]) -> Reply:
    if call.needed("compartmentId") != tenancy.TENANCY:
        raise invalid("compartmentId must be the tenancy: limits belong to the tenancy")
    page, headers = plain_page(items, call.query)
    return Reply(200, page, headers)


def _services(call: ApiCall) -> Reply:
    return _page(call, [{"name": name, "description": text} for name, text in limits.SERVICES.items()])


def _asked_for(call: ApiCall, service: str) -> list[Limit]:
    name = call.query.get("name")
    return [row for row in limits.limits() if service in ("", row.service) and name in (None, row.name)]


def _values(call: ApiCall) -> Reply:
    rows = _asked_for(call, call.needed("serviceName"))
    if call.query.get("scopeType", _SCOPE) != _SCOPE:
        rows = []
    return _page(call, [{"name": row.name, "scopeType": _SCOPE, "value": limits.value_of(call, row)} for row in rows])


def _definitions(call: ApiCall) -> Reply:
    rows = _asked_for(call, call.query.get("serviceName", ""))
    shown = [
        {
            "name": row.name, "serviceName": row.service, "description": row.described, "scopeType": _SCOPE,
            "areQuotasSupported": False, "isResourceAvailabilitySupported": True, "isDeprecated": False,
            "isEligibleForLimitIncrease": True, "isDynamic": False,
        }
        for row in rows
    ]  # fmt: skip
    return _page(call, shown)


def _availability(call: ApiCall) -> Reply:
    call.needed("compartmentId")
    limit = limits.find(call.params["serviceName"], call.params["limitName"])
    if limit is None:
        raise not_found(f"limit {call.params['limitName']} of the service {call.params['serviceName']}")
    used, value = limits.count_used(call, limit), limits.value_of(call, limit)
    available = max(0, value - used)
    fractions = {"fractionalUsage": float(used), "fractionalAvailability": float(available)}
    return Reply(200, {"used": used, "available": available, **fractions, "effectiveQuotaValue": float(value)})


def operations() -> list[ApiOperation]:
    one = f"{VERSION}/services/{{serviceName}}/limits/{{limitName}}/resourceAvailability"
    return [
        ApiOperation("ListServices", "GET", f"{VERSION}/services", _services, SERVICE),
        ApiOperation("ListLimitValues", "GET", f"{VERSION}/limitValues", _values, SERVICE),
        ApiOperation("ListLimitDefinitions", "GET", f"{VERSION}/limitDefinitions", _definitions, SERVICE),
        ApiOperation("GetResourceAvailability", "GET", one, _availability, SERVICE),
    ]
