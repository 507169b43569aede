# SPDX-License-Identifier: Apache-2.0
"""opc-retry-token: a repeated call gets the first reply, and creates no second resource."""

from __future__ import annotations

import json

from localcloud.api import clock
from localcloud.api.errors import ApiError
from localcloud.api.http import Reply
from localcloud.api.operations import ApiCall

VALID_SECONDS = 24 * 3600


def find_earlier_reply(call: ApiCall) -> Reply | None:
    """The first reply for this token, if there was one."""
    token = call.headers.get("opc-retry-token")
    if not token:
        return None
    row = call.store.connection.execute(
        "SELECT digest, status, headers, body, resource FROM retries"
        " WHERE token = ? AND principal = ? AND operation = ? AND created > ?",
        (token, call.principal.id, call.operation.name, clock.now() - VALID_SECONDS),
    ).fetchone()
    if row is None:
        return None
    digest, status, headers, body, resource = row
    if digest != call.said.digest:
        raise ApiError(409, "InvalidatedRetryToken", "this opc-retry-token was used with another body")
    if resource:
        created = call.store.get(resource)
        if created is None or not created.live:
            raise ApiError(409, "InvalidatedRetryToken", "the resource that this opc-retry-token created was deleted")
    return Reply(status, json.loads(body), json.loads(headers))


def remember_reply(call: ApiCall, reply: Reply) -> None:
    token = call.headers.get("opc-retry-token")
    if not token:
        return
    body = reply.body if isinstance(reply.body, dict) else {}
    call.store.connection.execute("DELETE FROM retries WHERE created < ?", (clock.now() - VALID_SECONDS,))
    call.store.connection.execute(
        "INSERT OR REPLACE INTO retries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            token, call.principal.id, call.operation.name, call.said.digest, reply.status,
            json.dumps(dict(reply.headers)), json.dumps(reply.body), body.get("id", ""), clock.now(),
        ),
    )  # fmt: skip
