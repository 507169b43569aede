# SPDX-License-Identifier: Apache-2.0
"""Refuses a call unless the policies in force allow everything that it needs. Records each decision."""

from __future__ import annotations

import logging
from threading import Lock
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import AwsPrincipal, Decision, Need, decide_aws_call, trusts_principal
from localcloud.aws.access.needs import common_keys, needs_of_aws_call, special_keys
from localcloud.aws.access.policies import in_force, role_named, trust_of
from localcloud.aws.account import ACCOUNT
from localcloud.aws.aws_errors import Reason, RefusalError, aws_refusal, denied_access
from localcloud.aws.calls import AwsCall
from localcloud.server import http
from localcloud.server.owned_rows import OwnedRows

log = logging.getLogger("localcloud")
MOST_ROWS = 20_000
# Keys that differ at each call. They are not recorded, because each call would get its own row.
_OF_THE_MOMENT = frozenset({"aws:CurrentTime", "aws:EpochTime"})


def authorize_aws_call(call: AwsCall, principal: AwsPrincipal, record: AwsRecord) -> None:
    """Refuses a call that the policies do not allow. AWS's message names the action and the resource."""
    # The check of access does not support the policies of some credentials.
    if why := table("aws_calls")["refused"].get(call.service.prefix, {}).get(call.operation):
        raise RefusalError(Reason.UNKNOWN_OPERATION, f"The local AWS does not support {call.name}: {why}")
    if call.name == "sts.AssumeRole" and any(name.startswith("PolicyArns") for name in call.parameters):
        raise RefusalError(
            Reason.UNKNOWN_OPERATION, "The local AWS supports session policies only as text, not as ARNs"
        )
    if call.name == "sts.AssumeRole" and any(name.startswith("Tags") for name in call.parameters):
        raise RefusalError(Reason.UNKNOWN_OPERATION, "The local AWS does not support tags of sessions")
    for need in needs_of_aws_call(call, principal):
        decision = decide_aws_call(need, principal, in_force(principal, need))
        record.note(call.name, principal, need, decision)
        if not decision.allowed:
            log.warning("refused %s to %s: %s on %s", call.name, principal.arn, need.action, need.resource)
            if call.service.prefix == "ec2" and need.action == "iam:CreateServiceLinkedRole":
                raise aws_refusal("spot role")
            raise denied_access(principal.arn, need.action, need.resource, decision.why)
    if call.name == "sts.AssumeRole":
        # The role's trust policy must allow the caller or the whole account.
        arn = call.text("RoleArn")
        role = role_named(arn.rpartition("/")[2])
        keys = {**common_keys(call, principal), **special_keys(call)}
        if role is None or role.arn != arn or not trusts_principal(trust_of(role), keys, principal=principal):
            raise denied_access(principal.arn, "sts:AssumeRole", arn)


def ec2_may_assume(role: Any) -> bool:
    """Whether the role's trust policy lets EC2 give its credentials to instances."""
    return trusts_principal(trust_of(role), {"aws:SourceAccount": (ACCOUNT,)}, service="ec2.amazonaws.com")


class AwsRecord:
    """The recorded decisions, the newest last, with all that is needed to evaluate them under other policies.

    Decisions that differ only in their time share a row with a count. Otherwise polling nodes would fill the record.
    The simulation's thread writes, and the event loop reads.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._rows = OwnedRows[dict[str, Any]](most)
        self._lock = Lock()
        self._number = 0

    @property
    def forgotten(self) -> int:
        """The number of rows that were dropped."""
        return self._rows.forgotten

    def note(self, operation: str, principal: AwsPrincipal, need: Need, decision: Decision) -> None:
        moment = http.format_rfc3339(http.current_moment())
        variables = {name: list(values) for name, values in need.keys.items() if name not in _OF_THE_MOMENT}
        key = (operation, principal.arn, need.action, need.resource, repr(sorted(variables.items())), decision.by)
        owner = principal.role or principal.arn  # whoever assumes a role chooses the session's name
        with self._lock:
            self._number += 1
            row = self._rows.pop(owner, key) or {"first": moment, "times": 0}
            row |= {
                "id": self._number, "time": moment, "times": row["times"] + 1, "operation": operation,
                "principal": {"type": principal.kind, "id": principal.arn, "name": principal.name},
                "target": {"resource": need.resource, "variables": variables}, "permissions": [need.action],
                "allowed": decision.allowed,
                "by": [{"permission": need.action, "policy": name, "statement": text} for name, text in decision.by],
                "missing": [] if decision.allowed else [need.action],
            }  # fmt: skip
            self._rows.put(owner, key, row)

    def since(self, number: int) -> list[dict[str, Any]]:
        """The rows with a higher `id` than this number."""
        with self._lock:
            return sorted((dict(row) for row in self._rows if row["id"] > number), key=lambda row: int(row["id"]))
