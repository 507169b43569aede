# SPDX-License-Identifier: Apache-2.0
"""One authenticated request through access, retry token, handler and transaction."""

from __future__ import annotations

from localcloud.api import authorization, retries
from localcloud.api.http import Reply
from localcloud.api.operations import ApiCall


def admit(call: ApiCall) -> int:
    """Authorizes a call before its body is received. Returns the state of the store that this was judged by."""
    authorization.authorize(call)
    return call.store.changes


def dispatch(call: ApiCall, admitted: int | None = None) -> Reply:
    """Runs the call and commits its changes. An error rolls all of them back."""
    if admitted is None or admitted != call.store.changes:
        authorization.authorize(call)
    if not call.operation.writes:
        return call.operation.handler(call)
    with call.store.transaction():
        reply = retries.find_earlier_reply(call)
        if reply is None:
            reply = call.operation.handler(call)
            retries.remember_reply(call, reply)
    if call.operation.service == "identity":
        call.cloud.access.forget()
    if call.operation.service == "core":
        call.cloud.hosts.network_changed()
    for step in call.after_commit:
        step()
    return reply
