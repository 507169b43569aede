# SPDX-License-Identifier: Apache-2.0
"""Records each decision, with everything that is needed to evaluate it again under other policies.

Decisions that differ only in their time share one row with a count. Otherwise nodes that poll would fill the record.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from components.aws.iam.decide import AwsPrincipal, Decision, Need
from localcloud.server import http

MOST_ROWS = 20_000
# Keys that differ at each call. With them, each call would get a row of its own.
_OF_THE_MOMENT = frozenset({"aws:CurrentTime", "aws:EpochTime"})


class AwsRecord:
    """The decisions, the newest last. The simulation's thread writes, the event loop reads."""

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._rows: OrderedDict[Any, dict[str, Any]] = OrderedDict()
        self._lock = Lock()
        self._number = 0
        self.forgotten = 0

    def note(self, operation: str, principal: AwsPrincipal, need: Need, decision: Decision) -> None:
        moment = http.rfc3339(http.now())
        variables = {name: list(values) for name, values in need.keys.items() if name not in _OF_THE_MOMENT}
        key = (operation, principal.arn, need.action, need.resource, repr(sorted(variables.items())), decision.by)
        with self._lock:
            self._number += 1
            row = self._rows.pop(key, None) or {"first": moment, "times": 0}
            row |= {
                "id": self._number, "time": moment, "times": row["times"] + 1, "operation": operation,
                "principal": {"type": principal.kind, "id": principal.arn, "name": principal.name},
                "target": {"resource": need.resource, "variables": variables}, "permissions": [need.action],
                "allowed": decision.allowed,
                "by": [{"permission": need.action, "policy": name, "statement": text} for name, text in decision.by],
                "missing": [] if decision.allowed else [need.action],
            }  # fmt: skip
            self._rows[key] = row
            while len(self._rows) > self._most:
                self._rows.popitem(last=False)
                self.forgotten += 1

    def since(self, number: int) -> list[dict[str, Any]]:
        """The rows after this number, which is the `id` of an earlier row."""
        with self._lock:
            return [dict(row) for row in self._rows.values() if row["id"] > number]
