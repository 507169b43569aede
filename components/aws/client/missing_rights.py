# SPDX-License-Identifier: Apache-2.0
"""Which statements of a policy a principal lacks, by AWS's own simulation of its policies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from components.aws.statements import AwsPolicy, AwsStatement
from components.platform.calls import read_at_once
from components.platform.prerequisites import Answer, Problem, Remark
from schemas.name_suggestions import count_noun

# AWS limits the rate of simulations.
_AT_ONCE = 4
_ROLE = ":assumed-role/"


class Reader(Protocol):
    def read(self, what: str, service: str, operation: str, **request: Any) -> Any: ...
    def read_if_there(self, what: str, service: str, operation: str, **request: Any) -> Any: ...


def check_rights(reader: Reader, arn: str, who: str, stack: str, policies: Sequence[AwsPolicy]) -> Iterator[Answer]:
    """`who`: the principal in words."""
    if arn.endswith(":root"):
        return
    source = _arn_of_role(reader, arn) if _ROLE in arn else arn
    statements = [statement for policy in policies for statement in policy.statements]

    def ask(statement: AwsStatement) -> list[str]:
        return _denied_actions(reader, source, statement)

    denied = [(statement, actions) for statement, actions in
              zip(statements, read_at_once(ask, statements, _AT_ONCE), strict=True) if actions]  # fmt: skip
    if len(denied) > 1 and len(denied) == len(statements):
        yield Problem(
            f"{who} has none of the rights that it needs ({source})",
            f"`trainyard access {stack}` prints the policy; --profile takes another caller",
        )
        return
    for statement, actions in denied:
        document = {**statement.document(), "Action": actions}
        yield Problem(
            f"{who} lacks {count_noun(len(actions), 'action')} on {statement.words} ({'; '.join(statement.why)}): "
            f"{', '.join(actions)}",
            f"An administrator adds the statement {json.dumps(document)} to a policy of {source}",
        )
    managed = [name for policy in policies for name in policy.managed]
    if managed:
        yield Remark(f"{who} also needs AWS's own policies, which are not simulated here: {', '.join(managed)}")


def _arn_of_role(reader: Reader, arn: str) -> str:
    """The role behind a session: its ARN may have a path, which that of the session lacks."""
    name = arn.partition(_ROLE)[2].partition("/")[0]
    found = reader.read_if_there(f"Ask for the role {name}", "iam", "get_role", RoleName=name)
    return str(found["Role"]["Arn"]) if found else arn


def _denied_actions(reader: Reader, source: str, statement: AwsStatement) -> list[str]:
    actions = [action for action in statement.actions if "*" not in action]
    if not actions:
        return []
    rows = reader.read(
        "Simulate the policies", "iam", "simulate_principal_policy", PolicySourceArn=source, ActionNames=actions,
        ResourceArns=list(statement.resources), ContextEntries=_context_of_condition(statement.condition),
    )["EvaluationResults"]  # fmt: skip
    return sorted({row["EvalActionName"] for row in rows if row["EvalDecision"] != "allowed"})


def _context_of_condition(condition: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The values with which the condition of our own statement is true."""
    entries = []
    for operator, keys in condition.items():
        for key, value in keys.items():
            if not operator.startswith("Null"):
                values = [str(one).lower() if isinstance(one, bool) else str(one) for one in
                          (value if isinstance(value, list | tuple) else [value])]  # fmt: skip
                kind = "stringList" if operator.startswith("For") else "string"
                entries.append({"ContextKeyName": key, "ContextKeyValues": values, "ContextKeyType": kind})
    return entries
