# SPDX-License-Identifier: Apache-2.0
"""Records each access decision, with everything that is needed to evaluate the call again under other statements.

Calls that differ only in their time share one row with a count. Otherwise nodes that poll would fill the record.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from components.oci.iam.judge import AccessDecision, Membership, Principal, Target
from components.oci.iam.printing import to_text
from localcloud.server import http

# Enough for days of training. Older rows are dropped and counted.
MOST_ROWS = 20_000
_Key = tuple[Any, ...]


@dataclass
class _JudgedCall:
    number: int
    first: float
    last: float
    times: int
    operation: str
    principal: Principal
    permissions: tuple[str, ...]
    target: Target
    verdict: AccessDecision


class Judgements:
    """The calls that policies decided, the newest last. Calls of administrators are absent: they need no policies."""

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._rows: OrderedDict[_Key, _JudgedCall] = OrderedDict()
        self._number = 0
        self.forgotten = 0

    def note(
        self,
        operation: str,
        principal: Principal,
        permissions: tuple[str, ...],
        target: Target,
        verdict: AccessDecision,
    ) -> None:
        """Records one decision."""
        self._number += 1
        moment = http.now()
        # The key contains groups and statements, so that after a change of these the call gets another row.
        by = tuple((one.permission, one.policy, one.statement) for one in verdict.by)
        groups = tuple(one.ocid for one in (*principal.groups, *principal.dynamic_groups))
        variables = tuple(sorted(target.variables.items()))
        key = (operation, principal.ocid or principal.name, groups, permissions, target.compartment, variables, by)
        row = self._rows.pop(key, None) or _JudgedCall(
            0, moment, moment, 0, operation, principal, permissions, target, verdict
        )
        row.number, row.last, row.times = self._number, moment, row.times + 1
        self._rows[key] = row
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)
            self.forgotten += 1

    def since(self, number: int) -> list[dict[str, Any]]:
        """The rows after this number, which is the `id` of an earlier row."""
        return [_shown(row) for row in self._rows.values() if row.number > number]


def _shown(row: _JudgedCall) -> dict[str, Any]:
    return {
        "id": row.number,
        "first": http.rfc3339(row.first),
        "time": http.rfc3339(row.last),
        "times": row.times,
        "operation": row.operation,
        "principal": _principal(row.principal),
        "target": {"compartment": row.target.compartment, "variables": dict(row.target.variables)},
        "permissions": list(row.permissions),
        "allowed": row.verdict.allowed,
        "by": [
            {"permission": one.permission, "policy": one.policy, "statement": to_text(one.statement)}
            for one in row.verdict.by
        ],
        "missing": list(row.verdict.missing),
    }


def _principal(principal: Principal) -> dict[str, Any]:
    return {
        "type": principal.type,
        "id": principal.ocid,
        "name": principal.name,
        "compartment": principal.compartment,
        "groups": _members(principal.groups),
        "dynamicGroups": _members(principal.dynamic_groups),
    }


def _members(rows: Iterable[Membership]) -> list[dict[str, str]]:
    return [{"id": row.ocid, "name": row.name, "domain": row.domain} for row in rows]
