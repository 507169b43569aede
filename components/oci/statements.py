# SPDX-License-Identifier: Apache-2.0
"""A plan's grants as OCI policy statements and matching rules. They allow the operations that users, runs and
notebooks call, and as little else as OCI's policy language can. Pure: `trainyard access` prints them without Pulumi."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from catalog.reason_tags import PROOF_OF_CONCEPT, TENANCY_WIDE
from catalog.tables import table
from components.oci import iam
from components.oci.iam.permissions import known_operations, permissions_of_grant, verb_covers
from components.oci.iam.statement import VERBS
from components.oci.plan import OciAccessPlan, OciPlan
from components.oci.stack import is_ocid
from components.plan.model import Grant

# OCI's default limit on statements in one policy.
STATEMENTS_PER_POLICY = 50
# The most from the root to any leaf compartment, including those of other stacks. OCI never raises this limit.
STATEMENTS_ON_A_PATH = 500

NARROWING = {"repository": "target.repo.name", "bucket": "target.bucket.name"}
# The variable of a condition that narrows a grant on such a target.
VARIABLES = {
    "images": NARROWING["repository"],
    "buckets": NARROWING["bucket"],
    "objects": NARROWING["bucket"],
    "secrets": "target.secret.name",
    "key": "target.key.id",
}
SECRET_ID = "target.secret.id"
BEYOND_DOCUMENTS = ("secrets", "key", "flow-log")
KINDS_OF_RESOURCE = {
    "proof-of-concept": ("datasciencenotebooksession", "datasciencejobrun", "datasciencemodeldeployment"),
    "runs": ("datasciencejobrun",),
    "notebooks": ("datasciencenotebooksession",),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One statement, its purpose, and how certain it is that it grants exactly that."""

    statement: iam.Statement
    why: tuple[str, ...]
    trust: iam.Trust
    attached_to_tenancy: bool

    @property
    def text(self) -> str:
        return iam.to_text(self.statement)


def policy_lines(plan: OciPlan) -> tuple[Line, ...]:
    """Every statement of the plan. Their order depends only on the plan."""
    if not plan.access.create:
        return ()
    if plan.access.mode == "least-privilege":
        return tuple(_lines_of_grants(plan, plan.access.grants))
    if plan.access.mode == "documented":
        return tuple(_documented_lines(plan))
    why = ("proof of concept, as Oracle documents it",)
    rows = table("oci_access")["proof-of-concept"]
    return tuple(_make_line(plan, row["who"], verb_grant(row["grant"]), why, "documented") for row in rows)


def statements_for_users(plan: OciPlan, done: Iterable[str]) -> tuple[str, ...]:
    """The statements that allow the stack's users these activities (such as `start runs`), whether the stack or an
    administrator makes the policy. None if the stack has no users."""
    if not has_users(plan.access):
        return ()
    needed = {name for what in done for _, permissions, _ in permissions_for(what) for name in permissions}
    made = policy_lines(replace(plan, access=replace(plan.access, create=True)))
    users = users_subject(plan.access)
    return tuple(
        line.text
        for line in made
        if line.statement.subject == users and needed & permissions_of_grant(line.statement.grant)
    )


def lines_by_policy(plan: OciPlan) -> dict[str, tuple[Line, ...]]:
    """The statements by policy. Statements for the tenancy have policies of their own, and each policy keeps OCI's
    limit."""
    named: dict[str, tuple[Line, ...]] = {}
    for tenancy, what in ((False, "access"), (True, "access-tenancy")):
        group = [line for line in policy_lines(plan) if line.attached_to_tenancy is tenancy]
        for start in range(0, len(group), STATEMENTS_PER_POLICY):
            number = start // STATEMENTS_PER_POLICY + 1
            key = what if number == 1 else f"{what}-{number}"
            named[key] = tuple(group[start : start + STATEMENTS_PER_POLICY])
    return named


def policy_tags(plan: OciPlan, policy: Iterable[Line]) -> dict[str, str]:
    """A tag that says why a policy covers the tenancy. People and policy packs look for it on the policy."""
    if not any(isinstance(line.statement.location, iam.Tenancy) for line in policy):
        return {}
    return {TENANCY_WIDE: PROOF_OF_CONCEPT if plan.access.mode == PROOF_OF_CONCEPT else "chosen"}


def matching_rule(plan: OciPlan, what: str) -> str:
    """Which resources belong to the dynamic group `runs` or `notebooks`."""
    open_to_all = plan.access.mode == "proof-of-concept"
    kinds = KINDS_OF_RESOURCE["proof-of-concept" if open_to_all else what]
    types: tuple[iam.Condition, ...] = tuple(iam.equals_text("resource.type", kind) for kind in kinds)
    if open_to_all:
        return iam.condition_text(iam.AnyOf(types))
    return iam.condition_text(iam.AllOf((*types, iam.equals_text("resource.compartment.id", plan.compartment or ""))))


def subject_of_grant(plan: OciPlan, who: str) -> iam.Subject:
    access = plan.access
    match who:
        case "runs":
            return group_named("dynamic-group", access.runs_group, access.domain)
        case "service":
            return iam.service_subject("datascience")
        case "bucket-service":
            return iam.service_subject(f"objectstorage-{plan.region}")
        case _:
            return users_subject(access)


def users_subject(access: OciAccessPlan) -> iam.Subject:
    if access.users_dynamic_group:
        return group_named("dynamic-group", access.users_dynamic_group, access.domain)
    return group_named("group", access.users_group or "", access.domain)


def group_named(kind: Literal["group", "dynamic-group"], name: str, domain: str | None = None) -> iam.Subject:
    """The subject for a group. Its name may be an OCID, and may include the domain: `Domain/name`."""
    if is_ocid(name):
        return iam.Subject(kind, (iam.Identified(name),))
    own_domain, slash, rest = name.partition("/")
    return iam.Subject(kind, (iam.Named(rest, own_domain) if slash else iam.Named(name, domain),))


def has_users(access: OciAccessPlan) -> bool:
    return bool(access.users_group or access.users_dynamic_group)


def location_of_grant(plan: OciPlan, compartment: str | None = None) -> iam.Location:
    return iam.Tenancy() if plan.access.tenancy_wide else location_of_compartment(compartment or plan.compartment)


def location_of_compartment(compartment: str | None) -> iam.Location:
    """The location of a compartment. The root compartment has the tenancy's OCID: there, statements say tenancy."""
    ocid = compartment or ""
    return iam.Tenancy() if ocid.startswith("ocid1.tenancy.") else iam.CompartmentId(ocid)


def _make_line(
    plan: OciPlan, who: str, grant: iam.Grant, why: Iterable[str], trust: iam.Trust, where: Any = None
) -> Line:
    here = location_of_grant(plan, where[0] if where else None)
    condition = iam.equals_text(*where[1]) if where and where[1] else None
    return Line(
        iam.Statement(subject_of_grant(plan, who), grant, here, condition),
        tuple(dict.fromkeys(why)),
        trust,
        # A policy can name only its own compartment, and those below.
        attached_to_tenancy=here != iam.CompartmentId(plan.compartment or ""),
    )


def _documented_lines(plan: OciPlan) -> Iterator[Line]:
    access = plan.access
    narrow = {
        "repository": plan.registry.repository if access.narrow_repository else None,
        "bucket": plan.bucket.name if access.narrow_bucket else None,
    }
    for row in table("oci_access")["documented"]:
        if row["who"] == "users" and not has_users(access):
            continue
        part = row.get("narrow")
        target = narrow.get(part) if part else None
        condition = (NARROWING[part], target) if part and target else None
        elsewhere = plan.network.compartment if row["grant"].endswith("virtual-network-family") else None
        why = ("as Oracle documents it for distributed training",)
        yield _make_line(plan, row["who"], verb_grant(row["grant"]), why, "documented", (elsewhere, condition))
    # Grants that the documents do not cover are the same as in least-privilege.
    of_own = (None, plan.bucket.name)
    beyond = [
        grant
        for grant in access.grants
        if grant.what in BEYOND_DOCUMENTS or (grant.what == "objects" and grant.target not in of_own)
    ]
    yield from _lines_of_grants(plan, beyond)


def _lines_of_grants(plan: OciPlan, grants: Iterable[Grant]) -> Iterator[Line]:
    """Grants on the same kind of resource with the same condition become one statement."""
    needed: dict[tuple[str, str, Any], Need] = {}
    for grant in grants:
        if grant.who == "users" and not has_users(plan.access):
            continue
        verb = table("oci_access")["verbs"].get(f"{grant.does} {grant.what}")
        if verb:
            yield _make_line(
                plan, grant.who, verb_grant(verb), (grant.why,), "documented", (None, _condition_of_grant(grant))
            )
            continue
        for resource_type, needs, trust in permissions_for(f"{grant.does} {grant.what}"):
            compartment = plan.network.compartment if grant.what in ("subnet", "flow-log") else None
            where = (compartment, _condition_of_grant(grant))
            need = needed.setdefault((grant.who, resource_type, where), Need())
            need.permissions |= needs
            need.why.append(grant.why)
            need.trusts.append(trust)
    for (who, resource_type, where), need in needed.items():
        grant_made = smallest_grant(resource_type, need)
        yield _make_line(plan, who, grant_made, need.why, weakest_trust([*need.trusts, grant_made.trust]), where)


def _condition_of_grant(grant: Grant) -> tuple[str, str] | None:
    if not grant.target:
        return None
    return (SECRET_ID if grant.what == "secrets" and is_ocid(grant.target) else VARIABLES[grant.what]), grant.target


def verb_grant(words: str) -> iam.VerbGrant:
    verb, resource_type = words.split()
    return iam.VerbGrant(verb, resource_type)  # type: ignore[arg-type]  # rows of oci_access.toml; a test parses each


class Need:
    """The permissions that one statement has to cover, collected from several grants."""

    def __init__(self) -> None:
        self.permissions: frozenset[str] = frozenset()
        self.why: list[str] = []
        self.trusts: list[iam.Trust] = []


def permissions_for(does_what: str) -> Iterator[tuple[str, frozenset[str], iam.Trust]]:
    for named in table("oci_access")["operations"][does_what]:
        yield from permissions_of(named)


def permissions_of(named: str) -> Iterator[tuple[str, frozenset[str], iam.Trust]]:
    """The needs of `Operation`, or the additional ones of `Operation:circumstance`, as (resource type, permissions,
    trust)."""
    name, circumstance = named, ""
    if name not in known_operations():
        name, _, circumstance = named.rpartition(":")
    operation = iam.find_operation(name)
    needed = operation.conditional[circumstance] if circumstance else operation.permissions
    for resource_type, permissions in iam.by_resource_type(needed).items():
        yield resource_type, permissions, operation.trust


def smallest_grant(resource_type: str, need: Need) -> iam.Grant:
    """A list of single permissions if documents name them all, otherwise the verb that covers them."""
    grant = iam.smallest_grant_for(resource_type, need.permissions)
    if isinstance(grant, iam.PermissionGrant) and weakest_trust(need.trusts) != "documented":
        verb = next(verb for verb in VERBS if need.permissions <= verb_covers(verb, resource_type))
        return iam.VerbGrant(verb, resource_type, "documented")
    return grant


def weakest_trust(trusts: Iterable[iam.Trust]) -> iam.Trust:
    order: tuple[iam.Trust, ...] = ("documented", "mixed", "inferred")
    return max(trusts, key=order.index, default="documented")
