# SPDX-License-Identifier: Apache-2.0
"""IAM's policies as the grounds of a rehearsal: who has which, and how others would have decided."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from components.aws_dl1.iam.decide import AwsPrincipal, InForce, Need, decide
from components.aws_dl1.iam.documents import PolicyDocument, statements_of
from components.aws_dl1.local.sessions import DEPLOYER, USER, regions, session_of
from components.platform.access import LostCall, RecordedCall
from components.platform.local_cloud import LocalCloud
from components.platform.mutations import PolicyInForce, StatementMutation

# A policy: its name, its ARN if it is attached and not a part of its holder, and its statements.
_Held = tuple[str, str, tuple[str, ...]]
EVERYTHING = "*"
_AWS_ARN = "arn:aws:iam::aws:policy/"


@dataclass(frozen=True, slots=True)
class AwsGrounds:
    """`components.platform.access.Grounds`.

    `held`: the names of the policies of each user and role, as `role/name`. `kept_by_aws`: names of AWS's own
    policies, which nobody else changes.
    """

    policies: tuple[PolicyInForce, ...]
    held: Mapping[str, frozenset[str]]
    kept_by_aws: frozenset[str] = frozenset()

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        documents = [_document(one) for one in policies]
        names = {one.name for one in self.policies}
        refused = []
        for call in calls:
            # What a bucket or a repository itself allows rests on no policy of people and nodes.
            if not call.allowed or not {name for _, name, _ in call.by} <= names:
                continue
            held = self.held.get(f"{call.principal.kind}/{call.principal.name}", frozenset())
            own = [one for one in documents if one.name in held]
            if not decide(call.target, call.principal, InForce(own)).allowed:
                refused.append(LostCall(call, call.permissions))
        return tuple(refused)

    def mutations(self) -> Iterator[StatementMutation]:
        for policy in (one for one in self.policies if one.name not in self.kept_by_aws):
            for text in policy.statements:
                yield StatementMutation("deleted", policy.name, text, None, f"{policy.name} without {text}")
                for after, how in _wider(json.loads(text)):
                    wider = canonical(after)
                    yield StatementMutation("widened", policy.name, text, wider, f"{policy.name}, {text}: {how}")

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        """Actions and their resources are AWS's own reference, so nothing is guessed."""
        return ()


def canonical(statement: Mapping[str, Any]) -> str:
    """As the cloud's record writes it."""
    return json.dumps(statement, sort_keys=True)


def read_call(row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
    """`names`: those of people by their ARN, and of nodes by the instance, which is the name of a role's session."""
    fields, target = row["principal"], row["target"]
    is_user, session = fields["type"] == "user", fields["id"].rpartition("/")[2]
    principal = AwsPrincipal(fields["id"], **{"user" if is_user else "role": fields["name"]})
    (action,) = row["permissions"]
    keys = {name: tuple(values) for name, values in target["variables"].items()}
    return RecordedCall(
        operation=row["operation"],
        principal=principal,
        who=names.get(fields["id"]) or names.get(session) or f"{fields['type']} {fields['name']}",
        permissions=(action,),
        target=Need(action, target["resource"], keys),
        times=int(row["times"]),
        allowed=bool(row["allowed"]),
        by=tuple((one["permission"], one["policy"], one["statement"]) for one in row["by"]),
        missing=tuple(f"{name} on {target['resource']}" for name in row["missing"]),
        at=datetime.fromisoformat(row["time"]),
    )


def access_facts(cloud: LocalCloud) -> AwsGrounds:
    """The policies in force for people and nodes, read as the deployer."""
    iam = session_of(cloud, DEPLOYER, regions()[0]).client("iam")
    held = {f"role/{row['RoleName']}": _of_role(iam, row["RoleName"]) for row in iam.list_roles()["Roles"]}
    groups = iam.list_groups_for_user(UserName=USER)["Groups"]
    own = [one for group in groups for one in _of_group(iam, group["GroupName"])]
    held[f"user/{USER}"] = own
    statements = {name: texts for rows in held.values() for name, _, texts in rows}
    by_aws = frozenset(name for rows in held.values() for name, arn, _ in rows if arn.startswith(_AWS_ARN))
    return AwsGrounds(
        tuple(PolicyInForce(name, "", statements[name]) for name in sorted(statements)),
        {holder: frozenset(name for name, _, _ in rows) for holder, rows in held.items()},
        by_aws,
    )


def _of_role(iam: Any, role: str) -> list[_Held]:
    attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    within = ((one, iam.get_role_policy(RoleName=role, PolicyName=one)["PolicyDocument"]) for one in names)
    return [*_attached(iam, attached), *((name, "", _statements(body)) for name, body in within)]


def _of_group(iam: Any, group: str) -> list[_Held]:
    attached = iam.list_attached_group_policies(GroupName=group)["AttachedPolicies"]
    names = iam.list_group_policies(GroupName=group)["PolicyNames"]
    within = ((one, iam.get_group_policy(GroupName=group, PolicyName=one)["PolicyDocument"]) for one in names)
    return [*_attached(iam, attached), *((name, "", _statements(body)) for name, body in within)]


def _attached(iam: Any, rows: Iterable[Mapping[str, Any]]) -> Iterator[_Held]:
    for row in rows:
        arn = row["PolicyArn"]
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        body = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        yield row["PolicyName"], arn, _statements(body)


def _statements(document: Mapping[str, Any]) -> tuple[str, ...]:
    body = document["Statement"]
    return tuple(canonical(one) for one in (body if isinstance(body, list) else [body]))


def _document(policy: PolicyInForce) -> PolicyDocument:
    body = {"Statement": [json.loads(text) for text in policy.statements]}
    return PolicyDocument(policy.name, statements_of(json.dumps(body)))


def _wider(statement: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    if "Condition" in statement:
        yield {key: value for key, value in statement.items() if key != "Condition"}, "without its condition"
    if statement.get("Resource", EVERYTHING) != EVERYTHING:
        yield {**statement, "Resource": EVERYTHING}, "on every resource"
