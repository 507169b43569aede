# SPDX-License-Identifier: Apache-2.0
"""Finds statements in force that the stack did not declare and that apply to its resources.

A tenancy has many policies, and most do not matter here, such as those of administrators. A statement counts if it
names a resource of the stack (its bucket, repository or groups), if it is for everybody, if it is for the stack's own
runs, whatever it allows them, or if it was added after the stack was made. Statements that other stacks of trainyard
made are left out, because their own files declare them. That a stack made one is shown by its state, not by tags, which
only claim it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from itertools import chain
from typing import Any

from catalog.tables import table
from components.oci.client.calls import call_oci
from components.oci.client.session import Session
from components.oci.iam import AllOf, AnyOf, Condition, Statement, permissions_of_grant, type_of
from components.oci.iam.evaluate import compile_condition, variables_in
from components.oci.iam.judge import Compartments
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import resource_families, resource_types
from components.oci.iam.printing import to_text
from components.oci.iam.statement import CompartmentId, CompartmentName, Identified, Named, StatementError, Subject
from components.oci.types import SERVED_TYPES
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.calls import call_of
from components.platform.live import LiveQuestion, Reading
from components.platform.review import Snapshot

POLICY = "oci:Identity/policy:Policy"
_GROUPS = (
    "oci:Identity/dynamicGroup:DynamicGroup",
    "oci:Identity/domainsDynamicResourceGroup:DomainsDynamicResourceGroup",
)
# A name that no resource of the stack has. A statement that also applies to it is not about the stack.
_ANOTHER = "\x00another"
_EVERYBODY = ("any-user", "any-group")
_Lists = Callable[..., list[Any] | None]


@dataclass(frozen=True)
class StackResource:
    """A resource of the stack, in the form in which requests for it are judged."""

    types: frozenset[str]
    compartment: str
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> Mapping[str, str]:
        return {**self.named, "target.compartment.id": self.compartment}

    @property
    def another(self) -> Mapping[str, str]:
        """A resource of the same kind in the same place that is not the stack's."""
        return {**self.variables, **dict.fromkeys(self.named, _ANOTHER)}


class PolicyReader:
    def __init__(
        self, question: LiveQuestion, session: Session, reading: Reading, lists: _Lists, made: datetime | None
    ) -> None:
        self._question, self._session, self._reading, self._lists, self._made = question, session, reading, lists, made
        self._call = call_of("drift", question.where.tell)
        declared = question.declared
        made_groups = declared.of(*_GROUPS)
        self._own_groups = {
            str(group.inputs.get("name") or group.inputs.get("displayName")).lower() for group in made_groups
        } | {group.id.lower() for group in made_groups}
        self._named_groups = groups_of_users(declared)
        self._makes_access = bool(declared.of(POLICY))
        self._things = tuple(_stack_resources(question))
        self._mine = frozenset[str]()

    def read(self) -> None:
        self._mine = frozenset(self._caller())
        ours = {one.id for one in self._question.declared.of(POLICY)}
        compartments = self._compartments()
        for place in dict.fromkeys((*compartments.parents, compartments.root)):
            for policy in self._lists("identity", "list_policies", place) or ():
                if policy.id not in ours:
                    self._policy(policy, place, compartments)

    def _compartments(self) -> Compartments:
        """The compartments of the stack, and all above them."""
        root, parents, names = self._session.tenancy, dict[str, str](), dict[str, str]()
        for start in sorted({thing.compartment for thing in self._things}):
            at = start
            while at != root and at not in parents:
                row = self._compartment(at)
                parents[at] = row.compartment_id if row is not None else root
                names[at] = row.name if row is not None else ""
                at = parents[at]
        return Compartments(root, parents, names)

    def _compartment(self, ocid: str) -> Any:
        return self._read_one(f"the compartment {ocid}, and what lies above it", "get_compartment", ocid)

    def _read_one(self, what: str, operation: str, ocid: str) -> Any:
        ask = partial(getattr(self._session.client("identity"), operation), ocid)
        return self._reading.allowed(what, lambda: call_oci(self._call, f"Read {what}", ask).data)

    def _caller(self) -> Iterator[str]:
        """The groups of the caller. The deployer's own statements name the stack's resources, too."""
        user = self._session.credentials.get("user") if self._session.signer is None else None
        if user is None:
            return
        root = self._session.tenancy
        for row in self._lists("identity", "list_user_group_memberships", root, user_id=str(user)) or ():
            yield f"group {row.group_id}"
            group = self._read_one(f"the group {row.group_id}", "get_group", row.group_id)
            if group is not None:
                yield f"group {group.name}"

    def _policy(self, policy: Any, place: str, compartments: Compartments) -> None:
        tags, stack = policy.freeform_tags or {}, self._question.declared.stack
        newer = self._made is not None and policy.time_created > self._made
        texts = [text for text in policy.statements if self._counts(text, place, newer, compartments)]
        claim = self._question.claim_in(tags) if texts else None
        if claim:
            texts = [text for text in texts if not claim.is_true(partial(has_statement, policy.id, text))]
        if texts or (tags.get("stack") == stack and tags.get("managed-by") == "trainyard"):
            statements = [_by_ocid(text, place, compartments) for text in texts]
            inputs = {"compartmentId": place, "name": policy.name, "statements": statements, "freeformTags": tags}
            where = "the tenancy" if place == compartments.root else f"compartment {compartments.names.get(place, '')}"
            self._reading.add(POLICY, policy.id, inputs, f"policy {policy.name} in {where}", claim=claim)

    def _counts(self, text: str, place: str, newer: bool, compartments: Compartments) -> bool:
        try:
            statement = parse_statement(text)
        except StatementError:
            # `admit` gives access to other tenancies. Principals that cannot be judged here are always shown.
            named = {name for thing in self._things for name in thing.variables.values()}
            return newer or any(name in text for name in named)
        scope = compartments.resolve(statement.location, place)
        types = {type_of(one) for one in permissions_of_grant(statement.grant)}
        reached = [
            thing for thing in self._things
            if scope in compartments.lineage(thing.compartment) and thing.types & types
            and may_hold(statement.condition, thing.variables)
        ]  # fmt: skip
        who = words_of_subject(statement.subject)
        if who in self._question.known:
            return False
        if self._is_ours(statement) or (newer and not self._named_groups.isdisjoint(statement.subject.members)):
            return True
        if not reached or (who in self._mine and not newer):
            return False
        narrowed = any(not may_hold(statement.condition, thing.another) for thing in reached if thing.named)
        return newer or statement.subject.kind in _EVERYBODY or (narrowed and self._makes_access)

    def _is_ours(self, statement: Statement) -> bool:
        members = statement.subject.members
        names = {(member.name if isinstance(member, Named) else member.ocid).lower() for member in members}
        return statement.subject.kind == "dynamic-group" and not names.isdisjoint(self._own_groups)


def groups_of_users(declared: Snapshot) -> frozenset[Named | Identified]:
    """The groups of users to which the stack gives rights. They may have other rights from before."""
    texts = (str(text) for policy in declared.of(POLICY) for text in policy.inputs.get("statements") or ())
    subjects = (found.subject for text in texts if isinstance(found := _comparable_statement(text), Statement))
    return frozenset(member for subject in subjects if subject.kind == "group" for member in subject.members)


def has_statement(policy: str, text: str, state: Snapshot) -> bool:
    """Whether a stack declares this statement in the policy with this OCID."""
    declared = (one.inputs.get("statements") or () for one in state.of(POLICY) if one.id == policy)
    return _comparable_statement(text) in {
        _comparable_statement(str(statement)) for statements in declared for statement in statements
    }


def _comparable_statement(text: str) -> Statement | str:
    try:
        return parse_statement(text)
    except StatementError:
        return text


def _by_ocid(text: str, place: str, compartments: Compartments) -> str:
    """The statement with the OCID of its compartment, if it has the name: only here both are known."""
    statement = _comparable_statement(text)
    if isinstance(statement, str) or not isinstance(statement.location, CompartmentName):
        return text
    ocid = compartments.resolve(statement.location, place)
    return to_text(replace(statement, location=CompartmentId(ocid))) if ocid and ocid in compartments.parents else text


def statement_kind_of(row: OciResourceType) -> Mapping[str, Any] | None:
    """How statements narrow resources of this type by their names. None: they do not."""
    return next((kind for kind in table("oci_review")["kind"] if kind["name"] == row.statement_kind), None)


@cache
def variables_with_names() -> frozenset[str]:
    return frozenset(kind["variable"] for row in SERVED_TYPES.values() if (kind := statement_kind_of(row)))


def _stack_resources(question: LiveQuestion) -> Iterator[StackResource]:
    declared = question.declared
    for row in SERVED_TYPES.values():
        kind = statement_kind_of(row)
        named = chain(
            *(resource_families().get(name, (name,)) for name in (kind["types"] if kind else row.statement_types))
        )
        types = frozenset(named) & frozenset(resource_types())
        for resource in declared.of(row.token) if types else ():
            name = {kind["variable"]: str(resource.inputs.get(row.name_input))} if kind else {}
            yield StackResource(types, str(resource.inputs.get("compartmentId")), name)


def may_hold(condition: Condition | None, target: Mapping[str, str]) -> bool:
    """Whether a condition can be true for a request for this target, with any caller, time and operation.

    A request for a bucket has no name of a repository.
    """
    match condition:
        case None:
            return True
        case AllOf(parts):
            return all(may_hold(part, target) for part in parts)
        case AnyOf(parts):
            return any(may_hold(part, target) for part in parts)
    named = variables_in(condition)
    if named <= target.keys():
        return compile_condition(condition)(target)
    return not any(name in variables_with_names() for name in named - target.keys())


def words_of_subject(subject: Subject) -> str:
    """The subject in words, such as `group Administrators`."""
    names = (one.name if isinstance(one, Named) else one.ocid for one in subject.members)
    return " ".join((subject.kind.replace("-", " ") if subject.members else subject.kind, ", ".join(names))).strip()
