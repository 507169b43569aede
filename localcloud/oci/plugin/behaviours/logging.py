# SPDX-License-Identifier: Apache-2.0
"""Logging: every write is a work request."""

from collections.abc import Callable
from typing import Any

from components.platform.calls import Call
from components.platform.values import Properties
from localcloud.oci.plugin.table import OciResource
from localcloud.oci.plugin.work_requests import finished


class LoggingResource(OciResource):
    """Log groups and logs. Every write is a work request, and only the work request names the new resource."""

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        within = [inputs[key] for key in self.row.within]
        answer = self._operation("create")(*within, details, opc_retry_token=token)
        return self._get(call, finished(call, self.client, answer, self.row.entity, "CREATED"), inputs)

    def _write(self, call: Call, what: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        answer = super()._write(call, what, operation, *arguments)
        action = "RELATED" if operation.__name__.startswith("change_") else "UPDATED"
        return finished(call, self.client, answer, self.row.entity, action)


class LogResource(LoggingResource):
    """A log. The plugin also waits for the work request of its deletion, which it does not for a group."""

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        answers: list[Any] = []
        path = self.call_path(id, {**outputs, **inputs})
        self._while_in_use(call, lambda: answers.append(self._operation("delete")(*path)))
        for answer in answers:
            finished(call, self.client, answer, self.row.entity, "DELETED")
        self._wait_gone(call, id, {**outputs, **inputs})
