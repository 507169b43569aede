# SPDX-License-Identifier: Apache-2.0
"""The access under a plan, in words and as statements, and how certain each statement is. Pure, for `trainyard
access`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from components.oci import iam
from components.oci.deployer import deployer_lines
from components.oci.iam.permissions import is_documented, permissions_of_grant
from components.oci.iam.printing import grant_text, location_text, subject_text
from components.oci.plan import OciPlan
from components.oci.statements import STATEMENTS_ON_A_PATH, Line, group_named, lines_by_policy, matching_rule
from components.plan.platform import AccessReporting
from components.plan.show import aligned_rows

VERBS = {"inspect": "list", "read": "list and read", "use": "read and use", "manage": "do everything with"}
MARKS = {"documented": "", "mixed": " [partly inferred]", "inferred": " [inferred]"}


@dataclass(frozen=True, slots=True)
class Right:
    """One statement. `inferred`: included permissions that no document names."""

    who: str
    may: str
    grant: str
    why: tuple[str, ...]
    statement: str
    trust: iam.Trust
    inferred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicyReport:
    name: str
    attached_to: str
    rights: tuple[Right, ...]


@dataclass(frozen=True, slots=True)
class DynamicGroup:
    """A dynamic group. `matching_rule`: the rule this stack gives it, or the rule it must have; None if unknown."""

    name: str
    of: str
    made: bool
    matching_rule: str | None


@dataclass(frozen=True, slots=True)
class OciAccessReport:
    """`wanted`: what an administrator has to grant, if neither this stack nor the one that it uses makes the access."""

    stack: str
    mode: str
    made: bool
    granted_by: str | None
    dynamic_groups: tuple[DynamicGroup, ...]
    policies: tuple[PolicyReport, ...]
    wanted: tuple[PolicyReport, ...]
    deployer: PolicyReport

    @property
    def rights(self) -> tuple[Right, ...]:
        return tuple(right for policy in (*self.policies, *self.wanted) for right in policy.rights)

    def text(self) -> str:
        parts = (
            _lines_by_subject(self),
            _dynamic_group_lines(self),
            _statement_lines(self),
            ["", "Whoever runs `pulumi up`, `pulumi destroy` and `trainyard drift` needs at least"],
            (f"  {line}" for line in _policy_lines(self.deployer)),
            _uncertain_grants(self),
        )
        return "\n".join(line for part in parts for line in part)


def build_oci_access_report(plan: OciPlan, deployers: str) -> OciAccessReport:
    """`deployers`: the group of the people who run `pulumi up`. Stack files do not name it."""
    group_named("group", deployers)
    prefix = f"{plan.team}-{plan.environment}"
    taken = "access" in plan.taken
    outside = replace(plan, access=replace(plan.access, create=not (plan.access.create or taken)))
    return OciAccessReport(
        stack=plan.stack,
        mode=plan.access.mode,
        made=plan.access.create,
        granted_by=plan.uses if taken else None,
        dynamic_groups=tuple(_dynamic_groups(plan)),
        policies=_policy_reports(plan),
        wanted=_policy_reports(outside),
        deployer=PolicyReport(
            f"{prefix}-deployers",
            _place_of_policy(plan, True),
            tuple(_right_of_line(plan, line) for line in deployer_lines(plan, deployers)),
        ),
    )


def _policy_reports(plan: OciPlan) -> tuple[PolicyReport, ...]:
    return tuple(
        PolicyReport(
            f"{plan.team}-{plan.environment}-{key}",
            _place_of_policy(plan, lines[0].attached_to_tenancy),
            tuple(_right_of_line(plan, line) for line in lines),
        )
        for key, lines in lines_by_policy(plan).items()
    )


def _right_of_line(plan: OciPlan, line: Line) -> Right:
    statement = line.statement
    unsure = line.trust != "documented"
    grant, place = statement.grant, location_text(statement.location)
    if isinstance(grant, iam.PermissionGrant):
        what = f"exactly {', '.join(grant.permissions)}"
    else:
        what = f"{VERBS[grant.verb]} {grant.resource_type.replace('all-resources', 'all resources')}"
    if statement.location == iam.CompartmentId(plan.compartment or ""):
        place = "the compartment"
    only = f", only where {iam.condition_text(statement.condition)}" if statement.condition else ""
    return Right(
        who=subject_text(statement.subject),
        may=f"{what} in {place.replace('tenancy', 'the whole tenancy')}{only}",
        grant=grant_text(statement.grant),
        why=line.why,
        statement=line.text,
        trust=line.trust,
        inferred=tuple(
            sorted(name for name in permissions_of_grant(statement.grant) if unsure and not is_documented(name))
        ),
    )


def _place_of_policy(plan: OciPlan, tenancy: bool) -> str:
    return f"tenancy {plan.tenancy or ''}".strip() if tenancy else f"compartment {plan.compartment or ''}".strip()


def _dynamic_groups(plan: OciPlan) -> Iterator[DynamicGroup]:
    access, taken = plan.access, "access" in plan.taken
    making = access.create and access.make_runs_group
    runs = f"that of {plan.uses}" if taken else access.runs_group
    yield DynamicGroup(runs, "runs", making, None if taken else matching_rule(plan, "runs"))
    if access.users_dynamic_group:
        making = access.create and access.make_notebooks_group
        rule = matching_rule(plan, "notebooks") if making else None
        yield DynamicGroup(access.users_dynamic_group, "users, from notebook sessions", making, rule)


def _lines_by_subject(report: OciAccessReport) -> Iterator[str]:
    yield f"{report.stack}: access {report.mode}"
    if not report.made:
        by = f"by the stack {report.granted_by}" if report.granted_by else "outside"
        yield f"  This stack grants nothing: it is granted {by}.{' What has to be granted:' if report.wanted else ''}"
    by_subject: dict[str, list[Right]] = {}
    for one in report.rights:
        by_subject.setdefault(one.who, []).append(one)
    for who, rights in by_subject.items():
        yield ""
        yield f"{who} may"
        for one in rights:
            yield f"  - {one.may}{MARKS[one.trust]}"
            yield f"      {'; '.join(one.why)}"


def _dynamic_group_lines(report: OciAccessReport) -> Iterator[str]:
    yield ""
    yield "Dynamic groups"
    for group in report.dynamic_groups:
        rule = ", its rule has to be" if group.matching_rule else ""
        yield f"  {group.name} ({group.of}){'' if group.made else f': not made by this stack{rule}'}"
        if group.matching_rule is not None:
            yield f"      {group.matching_rule}"


def _statement_lines(report: OciAccessReport) -> Iterator[str]:
    for policy in report.policies:
        yield ""
        yield from _policy_lines(policy)
    for policy in report.wanted:
        yield ""
        yield f"Statements that would grant it, attached to {policy.attached_to}"
        yield from (f"  {one.statement}" for one in policy.rights)
    count = sum(len(policy.rights) for policy in report.policies)
    if count > STATEMENTS_ON_A_PATH:
        yield ""
        yield f"OCI takes no more than {STATEMENTS_ON_A_PATH} statements from the root to any one compartment: {count}"
        yield "are too many, and no limit request raises it. Use fewer buckets of input data, or prefixes of one."


def _policy_lines(policy: PolicyReport) -> Iterator[str]:
    yield f"Policy {policy.name}, attached to {policy.attached_to}"
    yield from (f"  {one.statement}" for one in policy.rights)


def _uncertain_grants(report: OciAccessReport) -> Iterator[str]:
    """Every uncertain grant once: the reason is the same for all principals."""
    grounds = {}
    for right in (*report.rights, *report.deployer.rights):
        if MARKS[right.trust]:
            which = "some of the calls take" if right.trust == "mixed" else "the calls take"
            grounds[right.grant] = f"inferred: {', '.join(right.inferred) or f'which permissions {which}'}"
    if grounds:
        yield ""
        yield "No document says outright that these are right or enough; the rest is documented"
    yield from aligned_rows(grounds.items())


ACCESS_REPORTING = AccessReporting(build_oci_access_report)
