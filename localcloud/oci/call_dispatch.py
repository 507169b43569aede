# SPDX-License-Identifier: Apache-2.0
"""Carries out an authenticated call: authorization, retry token, handler, and transaction."""

from __future__ import annotations

import json

from localcloud.oci import authorization
from localcloud.oci.operations import ApiCall
from localcloud.server import http
from localcloud.server.api_errors import ApiError
from localcloud.server.http import Reply

# How long a retry token and its reply are stored.
RETRY_TOKEN_SECONDS = 24 * 3600


def find_earlier_reply(call: ApiCall) -> Reply | None:
    """The reply to an earlier request with the same retry token; None if there was none."""
    token = call.headers.get("opc-retry-token")
    if not token:
        return None
    row = call.store.connection.execute(
        "SELECT digest, status, headers, body, resource FROM retries"
        " WHERE token = ? AND principal = ? AND operation = ? AND created > ?",
        (token, call.principal.id, call.operation.name, http.current_moment() - RETRY_TOKEN_SECONDS),
    ).fetchone()
    if row is None:
        return None
    digest, status, headers, body, resource = row
    if digest != call.input.digest:
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
    call.store.connection.execute(
        "DELETE FROM retries WHERE created < ?", (http.current_moment() - RETRY_TOKEN_SECONDS,)
    )
    call.store.connection.execute(
        "INSERT OR REPLACE INTO retries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            token, call.principal.id, call.operation.name, call.input.digest, reply.status,
            json.dumps(dict(reply.headers)), json.dumps(reply.body), body.get("id", ""), http.current_moment(),
        ),
    )  # fmt: skip


def admit_call(call: ApiCall) -> int:
    """Authorizes a call before its body is received. Returns the version of the store that the decision is based on."""
    authorization.authorize_call(call)
    return call.store.changes


def dispatch_call(call: ApiCall, admitted: int | None = None) -> Reply:
    """Runs the call and commits its changes. An error rolls all of them back."""
    if admitted is None or admitted != call.store.changes:
        authorization.authorize_call(call)
    if not call.operation.writes:
        return call.operation.handler(call)
    with call.store.transaction():
        reply = find_earlier_reply(call)
        if reply is None:
            reply = call.operation.handler(call)
            remember_reply(call, reply)
    if call.operation.service == "identity":
        call.cloud.access.forget()
    if call.operation.service == "core":
        call.cloud.hosts.network_changed()
    for step in call.after_commit:
        step()
    return reply
