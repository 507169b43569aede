# SPDX-License-Identifier: Apache-2.0
"""Waits for work requests. A service has work requests of its own, or shares those of the core services."""

import time
from typing import Any

from components.oci.client.calls import attempt
from components.platform.calls import Call, ProviderError

_SECONDS = 300.0


def finished(call: Call, client: Any, answer: Any, entity: str, action: str) -> str:
    """Waits for the answer's work request, and returns the OCID of its resource.

    As Oracle's provider, it fails if the work request names no such entity, either with this action or in progress.
    """
    request_id = answer.headers["opc-work-request-id"]
    pause, deadline = 0.05, call.deadline(_SECONDS)
    while True:
        request = attempt(call, "Read the work request", lambda: client.get_work_request(request_id)).data
        if request.status == "SUCCEEDED":
            return _about(call, request, entity, {action, "IN_PROGRESS"})
        if request.status in {"FAILED", "CANCELED"} or time.monotonic() > deadline:
            raise ProviderError(
                f"{call.name}: its work request is {request.status}: {_reasons(call, client, request_id)}"
            )
        call.report.status(f"work request {request.status}, {request.percent_complete or 0:.0f} %")
        call.stop.wait(pause)
        pause = min(pause * 1.5, 5.0)


def _about(call: Call, request: Any, entity: str, actions: set[str]) -> str:
    for one in request.resources:
        if entity in one.entity_type.lower() and one.action_type in actions:
            return str(one.identifier)
    raise ProviderError(f"{call.name}: its work request {request.id} names no {entity} that is {' or '.join(actions)}.")


def _reasons(call: Call, client: Any, request_id: str) -> str:
    errors = attempt(call, "Read the work request", lambda: client.list_work_request_errors(request_id)).data
    return "; ".join(error.message for error in errors) or "no reason given"
