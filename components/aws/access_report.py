# SPDX-License-Identifier: Apache-2.0
"""The access under a plan, in words and as policy documents to paste. Pure, for `trainyard access`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.aws import CAPACITY_BLOCK, SPOT
from catalog.tables import table
from components.aws.plan import AwsDl1Plan
from components.aws.stack import NAME
from components.aws.statements import (
    TRUST,
    AwsPolicy,
    AwsStatement,
    aws_policies,
    merge_statements,
    policy_size_problem,
    row_statement,
    rows_of_grant,
    split_policies,
)
from components.aws.types.deployer_actions import drift_rows_of_kind, rows_of_kind
from components.plan.platform import AccessReporting

# The kind of what only `trainyard drift` reads.
DRIFT = "drift"


def deployer_policies(plan: AwsDl1Plan) -> tuple[AwsPolicy, ...]:
    """The least policies under which the plan's own deployer can bring it up, take it down and look for its drift."""
    return split_policies(
        f"{plan.team}-{plan.environment}-deployer", "deployer", merge_statements(_deployer_statements(plan))
    )


def _deployer_statements(plan: AwsDl1Plan) -> Iterator[AwsStatement]:
    """The statements for each kind of resource that the deployer makes. The kinds have names in the table."""
    rows = table("aws_dl1_access")
    access, jobs = plan.access, bool(plan.jobs)
    runs = any(job.runs for job in plan.jobs.values())
    network, taken = plan.network, "network" in plan.taken
    own = network.create and network.vpc is None
    group = network.create and network.make_security_group
    clusters = [job.cluster for job in plan.jobs.values()]
    makes: list[tuple[bool, str]] = [
        (True, "any stack"),
        (True, DRIFT),
        (own, "network"),
        (network.create, "subnet"),
        (own, "own routes"),
        (own and bool(network.endpoints), "endpoints in the subnet"),
        (group or (own and bool(network.endpoints)), "security group"),
        (network.create and not own, "subnet in an existing VPC"),
        (group and not own, "security group in an existing VPC"),
        (network.create and network.route_table is not None, "existing routes"),
        (network.public or network.gateway_cidr is not None, "way out"),
        (network.gateway_cidr is not None, "nat"),
        (bool(clusters), "cluster"),
        # A cluster that shrinks to one machine keeps its placement group as long as that machine exists.
        (
            any(cluster.placement_group is None and cluster.reservation is None for cluster in clusters),
            "placement group",
        ),
        (bool(clusters), "image"),
        (any(cluster.image_parameter for cluster in clusters), "image by parameter"),
        (bool(clusters) and taken, "cluster in another stack's network"),
        (bool(clusters) and not network.create and not taken, "cluster in an existing subnet"),
        (bool(clusters) and not network.make_security_group and not taken, "cluster in an existing security group"),
        (any(cluster.placement_group for cluster in clusters), "cluster in an existing placement group"),
        (any(cluster.reservation for cluster in clusters), "reserved cluster"),
        (any(cluster.market == CAPACITY_BLOCK for cluster in clusters), "cluster in a capacity block"),
        (any(cluster.market == SPOT for cluster in clusters), "spot cluster"),
        (any(cluster.public_address == "elastic" for cluster in clusters), "public address"),
        (access.create and access.make_runs_role, "nodes' role"),
        (access.create and access.make_runs_role and bool(access.permissions_boundary), "boundary of the nodes' role"),
        (access.create, "nodes' profile"),
        (not access.create and "access" not in plan.taken, "existing profile"),
        *_policy_kinds(plan),
        (plan.bucket.create, "bucket"),
        (plan.bucket.create and not plan.bucket.keep, "bucket that goes"),
        (not plan.bucket.create and "bucket" not in plan.taken, "existing bucket"),
        (plan.bucket.key is not None, "key"),
        (plan.registry.create, "registry"),
        (plan.registry.create and not plan.registry.keep, "registry that goes"),
        (not plan.registry.create and "registry" not in plan.taken, "existing registry"),
        (plan.logs.create and plan.logs.enabled, "logs"),
        (jobs, "secrets"),
        (jobs, "job objects"),
        (runs, "run"),
        (runs and plan.logs.enabled, "run logs"),
    ]
    for kind in (kind for made, kind in makes if made):
        for row in rows_of_kind(kind) if kind in rows["deployer"] else ():
            yield from _within_boundary(plan, row_statement(plan, row, kind))
        yield from (row_statement(plan, row, DRIFT) for row in drift_rows_of_kind(kind))
        for words in rows["as_users"].get(kind, ()):
            yield from (row_statement(plan, row, kind) for row in rows_of_grant("users", words))


def _within_boundary(plan: AwsDl1Plan, statement: AwsStatement) -> Iterator[AwsStatement]:
    """The statement, with what could give a role more rights allowed on roles of the stack's boundary only."""
    boundary, bounded = plan.access.permissions_boundary, set(table("aws_dl1_access")["bounded"])
    if within := bounded.intersection(statement.actions) if boundary else set():
        equals = {**statement.condition.get("ArnEquals", {}), "iam:PermissionsBoundary": boundary}
        words = f"{statement.words}, within the permissions boundary"
        condition = {**statement.condition, "ArnEquals": equals}
        yield replace(statement, actions=tuple(sorted(within)), condition=condition, words=words)
    if rest := tuple(action for action in statement.actions if action not in within):
        yield replace(statement, actions=rest)


def _policy_kinds(plan: AwsDl1Plan) -> list[tuple[bool, str]]:
    """Policies are made and attached; in some modes AWS's own ones are attached, too."""
    access = plan.access
    group, role = access.create and bool(access.users_group), access.create and bool(access.users_role)
    managed = table("aws_dl1_access")["managed"].get(access.mode, {})
    of_users, of_runs = bool(managed.get("users")), bool(managed.get("runs"))
    return [
        (access.create, "policies"),
        (access.create and of_runs, "AWS's policies"),
        (group, "policies of a group"),
        (group and of_users, "AWS's policies of a group"),
        (role, "policies of a role"),
        (role and of_users, "AWS's policies of a role"),
    ]


@dataclass(frozen=True, slots=True)
class AwsRight:
    """One statement. `everywhere`: AWS allows no narrower resource for its actions."""

    actions: tuple[str, ...]
    on: str
    why: tuple[str, ...]
    everywhere: bool


@dataclass(frozen=True, slots=True)
class AwsPolicyReport:
    """`attached_to`: the principals that have it. `document` is empty if only AWS's own policies (`managed`) are
    attached."""

    name: str
    attached_to: str
    rights: tuple[AwsRight, ...]
    managed: tuple[str, ...]
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AwsPrincipal:
    """`may`: its grants, in the words that all platforms share."""

    name: str
    made: bool
    may: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwsAccessReport:
    """`refused`: why AWS would refuse some of these policies."""

    stack: str
    mode: str
    made: bool
    granted_by: str | None
    account: str | None
    principals: tuple[AwsPrincipal, ...]
    policies: tuple[AwsPolicyReport, ...]
    trust: Mapping[str, Any]
    deployer: tuple[AwsPolicyReport, ...]
    refused: tuple[str, ...]

    def text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.stack}: access {self.mode}"
        if not self.made:
            by = f"by the stack {self.granted_by}" if self.granted_by else "outside"
            yield f"  This stack grants nothing: it is granted {by}. What has to be granted:"
        if self.account is None:
            yield "  The stack file has no `account`, so its policies name resources of any account."
        for principal in self.principals:
            yield ""
            yield f"{principal.name}{' (made)' if principal.made else ''} may"
            yield from (f"  - {grant}" for grant in principal.may)
        for policy in self.policies:
            yield ""
            if policy.managed:
                yield f"AWS's own policies, attached to {policy.attached_to}"
                yield from (f"  {name}" for name in policy.managed)
            if policy.document:
                yield f"Policy {policy.name}, attached to {policy.attached_to}"
                for right in policy.rights:
                    yield f"  - {', '.join(right.actions)}"
                    yield f"      on {right.on}"
                    yield f"      {'; '.join(right.why)}"
                yield from _document_lines(policy.document)
        yield ""
        yield "Only EC2 takes on the nodes' role, for its instances. Its trust policy"
        yield from _document_lines(self.trust)
        yield ""
        yield "Whoever runs `pulumi up`, `pulumi destroy` and `trainyard drift` needs at least"
        for policy in self.deployer:
            yield f"  Policy {policy.name}, attached to {policy.attached_to}"
            yield from (f"  {line}" for line in _document_lines(policy.document))
        if self.refused:
            yield ""
            yield "AWS would not take all of this"
            yield from (f"  {why}" for why in self.refused)


def report_aws_access(plan: AwsDl1Plan, deployers: str) -> AwsAccessReport:
    """`deployers`: the group of the people who run `pulumi up`. Stack files do not name it."""
    if not NAME.fullmatch(deployers):
        raise ValueError(f"`{deployers[:100]}` is not a valid name of a group in IAM")
    made, of_deployer = aws_policies(plan), deployer_policies(plan)
    by_who = [[policy for policy in made if policy.who == who] for who in ("users", "runs")]
    principals = []
    for who in ("users", "runs"):
        makes = who == "runs" and plan.access.create and plan.access.make_runs_role
        grants = [grant for grant in plan.access.grants if grant.who == who]
        may = (f"{one.does} {one.what}{f' of {one.target}' if one.target else ''}: {one.why}" for one in grants)
        principals.append(AwsPrincipal(_attached_to(plan, who), makes, tuple(may)))
    return AwsAccessReport(
        stack=plan.stack,
        mode=plan.access.mode,
        made=plan.access.create,
        granted_by=plan.uses if "access" in plan.taken else None,
        account=plan.account,
        principals=tuple(principals),
        policies=tuple(_policy_report(policy, _attached_to(plan, policy.who)) for policy in made),
        trust=TRUST,
        deployer=tuple(_policy_report(policy, f"group {deployers}") for policy in of_deployer),
        refused=tuple(why for part in (*by_who, of_deployer) if (why := policy_size_problem(part)) is not None),
    )


def _attached_to(plan: AwsDl1Plan, who: str) -> str:
    access = plan.access
    if who == "runs":
        return f"role {access.runs_role}"
    return f"role {access.users_role}" if access.users_role else f"group {access.users_group or 'of administrators'}"


def _policy_report(policy: AwsPolicy, attached_to: str) -> AwsPolicyReport:
    rights = tuple(AwsRight(one.actions, one.words, one.why, one.everywhere) for one in policy.statements)
    return AwsPolicyReport(policy.name, attached_to, rights, policy.managed, policy.document or {})


def _document_lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"  {line}" for line in json.dumps(document, indent=2).splitlines())


ACCESS_REPORTING = AccessReporting(report_aws_access)
