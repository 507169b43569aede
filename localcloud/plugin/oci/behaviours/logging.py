# SPDX-License-Identifier: Apache-2.0
"""Logging: every write is a work request."""

import time
from collections.abc import Callable
from typing import Any

from localcloud.plugin.oci.table import OciResource
from provider.base.errors import ProviderError
from provider.base.resource import Call
from provider.base.values import Properties
from provider.oci.calls import attempt

_WORK_SECONDS = 300.0


class LoggingResource(OciResource):
    """Log groups and logs. Every write is a work request, and only the work request names the new resource."""

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        within = [inputs[key] for key in self.row.within]
        answer = self._operation("create")(*within, details, opc_retry_token=token)
        request = self._finished(call, answer)
        made = next(
            (item.identifier for item in request.resources if self.row.entity in item.entity_type.lower()), None
        )
        if made is None:
            raise ProviderError(f"Create {call.name}: the work request {request.id} names nothing it made.")
        return self._get(call, made, inputs)

    def _write(self, call: Call, what: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        return self._finished(call, super()._write(call, what, operation, *arguments))

    def _finished(self, call: Call, answer: Any) -> Any:
        request_id = answer.headers["opc-work-request-id"]
        pause, deadline = 0.05, call.deadline(_WORK_SECONDS)
        while True:
            request = attempt(call, "Read the work request", lambda: self.client.get_work_request(request_id)).data
            if request.status == "SUCCEEDED":
                return request
            if request.status in {"FAILED", "CANCELED"} or time.monotonic() > deadline:
                raise ProviderError(
                    f"{call.name}: its work request is {request.status}: {self._reasons(call, request_id)}"
                )
            call.report.status(f"work request {request.status}, {request.percent_complete or 0:.0f} %")
            call.stop.wait(pause)
            pause = min(pause * 1.5, 5.0)

    def _reasons(self, call: Call, request_id: str) -> str:
        errors = attempt(call, "Read the work request", lambda: self.client.list_work_request_errors(request_id)).data
        return "; ".join(error.message for error in errors) or "no reason given"
