# SPDX-License-Identifier: Apache-2.0
"""Decides requests: whether a principal is allowed, and by which statement.

Statements are compiled once into an index by subject and permission. A decision is then a few look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from components.oci.iam.evaluate import Test, Variables, compile_condition
from components.oci.iam.permissions import ALL_RESOURCES, permissions_of_grant
from components.oci.iam.statement import (
    CompartmentId,
    CompartmentName,
    Identified,
    Location,
    Statement,
    Subject,
    Tenancy,
    VerbGrant,
)

DEFAULT_DOMAIN = "Default"
# The index key of statements that also grant permissions the catalog does not know.
EVERYTHING = "*"
EVERY_GRANT = ("manage", ALL_RESOURCES)

_Key = tuple[str, ...]


@dataclass(frozen=True)
class Compartments:
    """A tenancy's compartments. `root` is the tenancy. `parents` and `names` are by OCID, without the root."""

    root: str
    parents: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def lineage(self, ocid: str) -> tuple[str, ...]:
        """The compartment and all above it, up to the tenancy. Empty if it is not in this tenancy."""
        line: list[str] = []
        at: str | None = ocid
        while at is not None and at not in line:
            line.append(at)
            if at == self.root:
                return tuple(line)
            at = self.parents.get(at)
        return ()

    def _child(self, parent: str, name: str) -> str | None:
        wanted = name.lower()
        for ocid, above in self.parents.items():
            if above == parent and self.names.get(ocid, "").lower() == wanted:
                return ocid
        return None

    def _below(self, start: str, path: tuple[str, ...]) -> str | None:
        at: str | None = start
        for name in path:
            at = self._child(at, name) if at is not None else None
        return at

    def resolve(self, location: Location, attached: str) -> str | None:
        """The compartment that a location names in a policy attached to `attached`.

        A policy reaches its own compartment and those below. None for any other: OCI refuses such a statement.
        """
        match location:
            case Tenancy():
                return self.root if attached == self.root else None
            case CompartmentId(ocid):
                return ocid if attached in self.lineage(ocid) else None
            case CompartmentName(path):
                below = self._below(attached, path)
                own = self.names.get(attached, "").lower() == path[0].lower()
                return below or (self._below(attached, path[1:]) if own else None)


@dataclass(frozen=True, slots=True)
class Membership:
    """A group or dynamic group that a principal belongs to."""

    ocid: str
    name: str
    domain: str = DEFAULT_DOMAIN


@dataclass(frozen=True)
class Principal:
    """The caller. `type`: `user`, `service`, or the type in a resource principal's OCID (`datasciencejobrun`)."""

    type: str
    ocid: str = ""
    name: str = ""
    compartment: str = ""
    groups: tuple[Membership, ...] = ()
    dynamic_groups: tuple[Membership, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def keys(self) -> tuple[_Key, ...]:
        """The index keys of every subject that includes this principal."""
        if self.type == "service":
            return (("any-user",), ("service", self.name.lower()))
        everyone: tuple[_Key, ...] = (("any-user",),)
        if self.groups or self.dynamic_groups:
            everyone += (("any-group",),)
        kinds = (("group", self.groups), ("dynamic-group", self.dynamic_groups))
        return everyone + tuple(
            key
            for kind, memberships in kinds
            for group in memberships
            for key in ((kind, group.ocid.lower()), (kind, group.domain.lower(), group.name.lower()))
        )

    @cached_property
    def variables(self) -> Variables:
        """The request.* variables that describe the principal."""
        variables: dict[str, str | tuple[str, ...]] = {"request.principal.type": self.type}
        if self.ocid:
            variables["request.principal.id"] = self.ocid
        if self.compartment:
            variables["request.principal.compartment.id"] = self.compartment
        if self.type == "user":
            variables |= {"request.user.id": self.ocid, "request.user.name": self.name}
        if self.groups:
            variables["request.groups.id"] = tuple(row.ocid for row in self.groups)
        return variables | {name.lower(): value for name, value in self.extra.items()}


@dataclass(frozen=True)
class Target:
    """The requested resource: its compartment, and the request's target.* variables."""

    compartment: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttachedPolicy:
    """A policy as it is attached to a compartment (or to the tenancy, by its OCID)."""

    name: str
    compartment: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """One statement in force: its compartment, which includes all below, and its test."""

    policy: str
    statement: Statement
    scope: str
    test: Test | None


@dataclass(frozen=True, slots=True)
class Granted:
    """A permission, and the statement it comes from."""

    permission: str
    policy: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The decision: by which statements, or which permissions were missing."""

    allowed: bool
    by: tuple[Granted, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class CompiledPolicies:
    """All policies of a tenancy, ready for decisions. `idle` are statements whose compartment does not exist."""

    compartments: Compartments
    index: Mapping[_Key, Mapping[str, tuple[CompiledStatement, ...]]]
    idle: tuple[tuple[AttachedPolicy, Statement], ...]
    lineages: dict[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    def lineage(self, compartment: str) -> frozenset[str]:
        """The compartment and all above it. Cached."""
        lineage = self.lineages.get(compartment)
        if lineage is None:
            lineage = self.lineages[compartment] = frozenset(self.compartments.lineage(compartment))
        return lineage

    def rules(self, principal: Principal, permission: str) -> Iterable[CompiledStatement]:
        """Every statement for this principal and permission, in any compartment and with any condition."""
        for key in principal.keys:
            by_permission = self.index.get(key)
            if by_permission:
                yield from by_permission.get(permission, ())
                yield from by_permission.get(EVERYTHING, ())


def _subject_keys(subject: Subject) -> Iterable[_Key]:
    if not subject.members:
        yield (subject.kind,)
    for member in subject.members:
        if isinstance(member, Identified):
            yield (subject.kind, member.ocid.lower())
        elif subject.kind == "service":
            yield (subject.kind, member.name.lower())
        else:
            yield (subject.kind, (member.domain or DEFAULT_DOMAIN).lower(), member.name.lower())


def compile_policies(policies: Iterable[AttachedPolicy], compartments: Compartments) -> CompiledPolicies:
    """Indexes statements by subject and permission. Must be repeated when a policy or compartment changes."""
    index: dict[_Key, dict[str, tuple[CompiledStatement, ...]]] = {}
    idle: list[tuple[AttachedPolicy, Statement]] = []
    for policy in policies:
        for statement in policy.statements:
            scope = compartments.resolve(statement.location, policy.compartment)
            if scope is None:
                idle.append((policy, statement))
                continue
            test = compile_condition(statement.condition) if statement.condition else None
            rule = CompiledStatement(policy.name, statement, scope, test)
            grant = statement.grant
            is_everything = isinstance(grant, VerbGrant) and (grant.verb, grant.resource_type) == EVERY_GRANT
            for key in _subject_keys(statement.subject):
                by_permission = index.setdefault(key, {})
                for name in (EVERYTHING,) if is_everything else permissions_of_grant(grant):
                    by_permission[name] = (*by_permission.get(name, ()), rule)
    return CompiledPolicies(compartments, index, tuple(idle))


def request_variables(
    policies: CompiledPolicies, principal: Principal, target: Target, request: Mapping[str, str]
) -> dict[str, str | tuple[str, ...]]:
    """Every variable of a request except request.permission, which is each needed permission in turn."""
    variables = {**principal.variables, "target.compartment.id": target.compartment}
    name = policies.compartments.names.get(target.compartment)
    if name is not None:
        variables["target.compartment.name"] = name
    for given in (target.variables, request):
        variables.update((variable.lower(), value) for variable, value in given.items())
    return variables


def judge_request(
    policies: CompiledPolicies,
    principal: Principal,
    needed: Iterable[str],
    target: Target,
    request: Mapping[str, str] | None = None,
) -> AccessDecision:
    """Whether the principal has every needed permission on the target.

    `request`: further variables: request.operation, request.region, those of `time_variables` …
    """
    lineage = policies.lineage(target.compartment)
    variables: dict[str, str | tuple[str, ...]] | None = None
    by: list[Granted] = []
    missing: list[str] = []
    for permission in needed:
        for rule in policies.rules(principal, permission):
            if rule.scope not in lineage:
                continue
            if rule.test is not None:
                if variables is None:
                    variables = request_variables(policies, principal, target, request or {})
                variables["request.permission"] = permission
                if not rule.test(variables):
                    continue
            by.append(Granted(permission, rule.policy, rule.statement))
            break
        else:
            missing.append(permission)
    return AccessDecision(not missing, tuple(by), tuple(sorted(missing)))
