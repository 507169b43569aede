# SPDX-License-Identifier: Apache-2.0
"""A plan's grants as policy documents of IAM. Pure: `trainyard access` prints them without any SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.nested import map_values
from catalog.tables import table
from components.aws.plan import AwsDl1Plan

ANY = "*"
VERSION = "2012-10-17"
# The most characters of one managed policy, without spaces. AWS does not raise this limit.
CHARACTERS_PER_POLICY = 6144
# How many policies can be attached to one role or group. AWS raises this limit on request.
POLICIES_PER_PRINCIPAL = 10
# The service that assumes the nodes' role.
TRUST: Mapping[str, Any] = {
    "Version": VERSION,
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
# The policy that AWS gives an endpoint without one, with its version: the provider sees no difference to it.
_ENDPOINT_DEFAULT: Mapping[str, Any] = {
    "Version": "2008-10-17",
    "Statement": [{"Effect": "Allow", "Principal": ANY, "Action": ANY, "Resource": ANY}],
}


@dataclass(frozen=True, slots=True)
class NamedResource:
    """The resource of a statement. `condition`: narrows it if names cannot. `words`: its name for people.

    `arns` is empty if the plan has no such resource.
    """

    arns: tuple[str, ...]
    condition: Mapping[str, Mapping[str, Any]]
    words: str


def named_resource(plan: AwsDl1Plan, name: str, bucket: str | None = None) -> NamedResource:
    """The resource of a row. `bucket`: another bucket than the stack's own, such as one of input data."""
    row = table("aws_dl1_access")["resources"][name]
    values = _resource_values(plan, bucket or plan.bucket.name)
    access = plan.access
    there = {None: True, "group": access.users_group is not None, "role": access.users_role is not None}[row.get("of")]
    clusters = [job.cluster for job in plan.jobs.values()]
    managed = table("aws_dl1_access")["managed"].get(access.mode, {})
    several = {
        "job": [cluster.key for cluster in clusters],
        "cluster": [cluster.name for cluster in clusters],
        "image": [cluster.image or ANY for cluster in clusters],
        "parameter": [cluster.image_parameter for cluster in clusters if cluster.image_parameter],
        "reservation": [cluster.reservation for cluster in clusters if cluster.reservation],
        "placement_group": [cluster.placement_group for cluster in clusters if cluster.placement_group],
        **{f"managed_of_{who}": managed.get(who, ()) for who in ("users", "runs")},
    }
    arns = [arn for pattern in row["arns"] for arn in _fill_pattern(pattern, values, several) if there]

    def fill(part: Any) -> Any:
        return part if isinstance(part, Mapping | list) else _one_or_all([*_fill_pattern(str(part), values, several)])

    condition = map_values(row.get("only", {}), fill)
    return NamedResource(tuple(dict.fromkeys(arns)), condition, row["words"].format(**values))


def _fill_pattern(pattern: str, values: Mapping[str, str], several: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One text, or one for each value if the pattern contains a name that has several, such as that of a job."""
    for name, texts in several.items():
        if f"{{{name}}}" in pattern:
            yield from (pattern.format(**values, **{name: text}) for text in texts)
            return
    yield pattern.format(**values)


def _resource_values(plan: AwsDl1Plan, bucket: str) -> dict[str, str]:
    # Without the account's number, the ARN has a wildcard. IAM still grants access to the own account only.
    account = plan.account or ANY
    access = plan.access
    named = f"role/{access.users_role}" if access.users_role else f"group/{access.users_group or ANY}"
    return {
        "region": plan.region,
        "account": account,
        "here": f"{plan.region}:{account}",
        "stack": plan.stack,
        # `uses` names it as organization/project/stack.
        "giver": (plan.uses or ANY).rpartition("/")[2],
        "prefix": f"{plan.team}-{plan.environment}",
        "bucket": bucket,
        "repository": plan.registry.repository,
        "log_group": plan.logs.group_name,
        "key": plan.bucket.key or "",
        "role": plan.access.runs_role,
        "profile": f"{plan.team}-{plan.environment}-nodes" if plan.access.create else plan.access.runs_role,
        "vpc": plan.network.vpc or ANY,
        "route_table": plan.network.route_table or ANY,
        "subnet": plan.network.subnet or ANY,
        "security_group": plan.network.security_group,
        "users": f"arn:aws:iam::{account}:{named}",
    }


@dataclass(frozen=True, slots=True)
class AwsStatement:
    """One statement. `words` names its resources for people; `why` is the purpose of each of its grants."""

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    condition: Mapping[str, Mapping[str, Any]]
    words: str
    why: tuple[str, ...]

    @property
    def everywhere(self) -> bool:
        return self.resources == (ANY,)

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {"Effect": "Allow", "Action": _one_or_all(self.actions)}
        body["Resource"] = _one_or_all(self.resources)
        return {**body, **({"Condition": self.condition} if self.condition else {})}


@dataclass(frozen=True, slots=True)
class AwsPolicy:
    """The policy of one kind of principal: statements of this stack, or AWS's own policies."""

    name: str
    who: str
    statements: tuple[AwsStatement, ...]
    managed: tuple[str, ...] = ()

    @property
    def document(self) -> Mapping[str, Any] | None:
        return policy_document(self.statements) if self.statements else None


def aws_policies(plan: AwsDl1Plan) -> tuple[AwsPolicy, ...]:
    """The policies of users and nodes. Statements that do not fit into one document go into a further policy."""
    found: list[AwsPolicy] = []
    managed = table("aws_dl1_access")["managed"].get(plan.access.mode)
    for who in ("users", "runs"):
        name = f"{plan.team}-{plan.environment}-{'nodes' if who == 'runs' else who}"
        granted = [grant for grant in plan.access.grants if grant.who == who]
        if managed is not None:
            granted = [grant for grant in granted if f"{grant.does} {grant.what}" in managed["beside"]]
        statements = (
            row_statement(plan, row, grant.why, grant.target if grant.what in ("buckets", "objects") else None)
            for grant in granted
            for row in rows_of_grant(grant.who, f"{grant.does} {grant.what}")
        )
        # A stack without jobs has no resources of jobs, and AWS refuses a statement without resources.
        own = split_policies(name, who, merge_statements(one for one in statements if one.resources))
        arns = tuple(f"arn:aws:iam::aws:policy/{one}" for one in managed[who]) if managed else ()
        if arns:
            own = (replace(own[0], managed=arns), *own[1:]) if own else (AwsPolicy(name, who, (), arns),)
        found += own
    return tuple(found)


def split_policies(name: str, who: str, statements: Sequence[AwsStatement]) -> tuple[AwsPolicy, ...]:
    """Splits statements, in their order, into policies within AWS's limit."""
    parts: list[tuple[AwsStatement, ...]] = []
    for statement in statements:
        longer = (*parts[-1], statement) if parts else ()
        if longer and policy_size(policy_document(longer)) <= CHARACTERS_PER_POLICY:
            parts[-1] = longer
        else:
            parts.append((statement,))
    names = (name if number == 1 else f"{name}-{number}" for number in range(1, len(parts) + 1))
    return tuple(AwsPolicy(part_name, who, part) for part_name, part in zip(names, parts, strict=True))


def policy_document(statements: Iterable[AwsStatement]) -> dict[str, Any]:
    return {"Version": VERSION, "Statement": [one.document() for one in statements]}


def policy_size(document: Mapping[str, Any]) -> int:
    """The characters that AWS counts."""
    return len(json.dumps(document, separators=(",", ":")))


def policy_size_problem(made: Sequence[AwsPolicy]) -> str | None:
    """Why AWS would refuse these policies of one principal. None if it would not."""
    for policy in made:
        length = policy_size(policy.document) if policy.document else 0
        if length > CHARACTERS_PER_POLICY:
            return f"one statement of {policy.name} has {length} characters, and a policy may have 6144"
    attached = sum(bool(policy.statements) + len(policy.managed) for policy in made)
    if attached > POLICIES_PER_PRINCIPAL:
        return f"{attached} policies would be attached to one role or group, and AWS takes {POLICIES_PER_PRINCIPAL}"
    return None


def merge_statements(found: Iterable[AwsStatement]) -> tuple[AwsStatement, ...]:
    """One statement for each resource and condition, with all actions on it."""
    by_resource: dict[tuple[tuple[str, ...], str], AwsStatement] = {}
    for one in found:
        key = (one.resources, json.dumps(one.condition, sort_keys=True))
        kept = by_resource.setdefault(key, one)
        by_resource[key] = replace(
            kept, actions=tuple(sorted({*kept.actions, *one.actions})), why=tuple(dict.fromkeys((*kept.why, *one.why)))
        )
    return tuple(by_resource.values())


def row_statement(plan: AwsDl1Plan, row: Mapping[str, Any], why: str, bucket: str | None = None) -> AwsStatement:
    """The statement for a row of (resource, actions)."""
    on = named_resource(plan, row["on"], bucket)
    return AwsStatement(tuple(sorted(row["actions"])), on.arns, on.condition, on.words, (why,))


def vpc_endpoint_policies(plan: AwsDl1Plan) -> dict[str, str]:
    """The policy of each endpoint, by its service. It allows everything if nodes can reach the internet anyway: without
    one, the provider would leave an endpoint the policy that it had before."""
    closed = plan.network.endpoints and not plan.network.public
    documents = {}
    for service, rows in table("aws_dl1_access")["endpoints"].items():
        statements = [{**row_statement(plan, row, "").document(), "Principal": "*"} for row in rows]
        document = {"Version": VERSION, "Statement": statements} if closed else _ENDPOINT_DEFAULT
        documents[service] = json.dumps(document, sort_keys=True)
    return documents


def rows_of_grant(who: str, words: str) -> Sequence[Mapping[str, Any]]:
    """The rows that a grant (`does what`) needs. Some rows depend on who has the grant."""
    rows = table("aws_dl1_access")
    own: Sequence[Mapping[str, Any]] | None = rows.get(who, {}).get(words)
    return own if own is not None else rows["actions"].get(words, ())


def _one_or_all(texts: Sequence[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else list(texts)
