# SPDX-License-Identifier: Apache-2.0
"""Computes who may do what by the policies of snapshots, for every identity, action and resource that any policy names.

Actions that the same statements cover are evaluated once. A wildcard also covers actions that the catalog does not
know: one made-up action represents them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import (
    AwsPrincipal,
    InForce,
    Need,
    UnknownVariableError,
    conditions_hold,
    covers_action,
    decide_aws_call,
)
from components.aws.iam.documents import PolicyDocument, PolicyStatement
from components.aws.review.conditions import Keys, matching_text, own_keys, values_to_test
from components.aws.review.snapshot_policies import STAND_IN, Access, Identity, Owned, read_access
from components.platform.circumstances import (
    OTHER,
    combine_circumstances,
    described_resource,
    settled_variables,
    texts_fitting_pattern,
)
from components.platform.review import EVERYBODY, UNREAD, Ability, Snapshot

READ = "READ"
OPAQUE = "policy:"
# Followed by the boundary.
WITHOUT_BOUNDARY = "WITHOUT_BOUNDARY "
_ACCOUNT = "000000000000"
_ANYBODY = "arn:aws:iam::111111111111:user/anybody"
_NOTHING = Identity()
_Statements = tuple[PolicyStatement, ...]


@dataclass(frozen=True)
class _Question:
    """The statements about one principal on each side: its own, its boundaries', and those of resource policies that
    may name it."""

    principal: AwsPrincipal
    own: tuple[_Statements, ...]
    boundaries: tuple[_Statements | None, ...]
    of_resources: tuple[_Statements, ...]
    # The only resource, if the statements name none.
    only: str = ""

    def all(self) -> _Statements:
        sides = (*self.own, *(boundary or () for boundary in self.boundaries), *self.of_resources)
        return tuple(statement for side in sides for statement in side)

    def narrowed_to(self, action: str) -> _Question:
        def about_action(statements: _Statements) -> _Statements:
            return tuple(statement for statement in statements if covers_action(statement, action))

        return replace(
            self,
            own=tuple(map(about_action, self.own)),
            boundaries=tuple(None if one is None else about_action(one) for one in self.boundaries),
            of_resources=tuple(map(about_action, self.of_resources)),
        )

    def sides_allowing(self, need: Need) -> tuple[int, ...]:
        """The numbers of the sides that allow it."""
        allowing = []
        for number, boundary in enumerate(self.boundaries):
            policies = InForce(
                identity=(PolicyDocument("", self.own[number]),),
                boundaries=() if boundary is None else (PolicyDocument("", boundary),),
                of_resource=(PolicyDocument("", self.of_resources[number]),),
            )
            if decide_aws_call(need, self.principal, policies).allowed:
                allowing.append(number)
        return tuple(allowing)


def aws_abilities(sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
    access = [read_access(side) for side in sides]
    found = [set(one.plain) for one in access]
    for number, one in enumerate(access):
        found[number] |= {Ability(UNREAD, READ, text) for text in one.unread}
    for number, ability in (*_abilities_of_identities(access, sides), *_abilities_by_resource_policies(access)):
        found[number].add(ability)
    return tuple(map(frozenset, found))


def _abilities_of_identities(access: Sequence[Access], sides: Sequence[Snapshot]) -> Iterator[tuple[int, Ability]]:
    of_resources = tuple(
        tuple(
            statement
            for owned in side.owned.values()
            if owned.judged and not owned.through
            for statement in owned.statements
        )
        for side in access
    )
    for title in dict.fromkeys(title for side in access for title in side.identities):
        kind, _, name = title.partition(" ")
        arn = f"arn:aws:iam::{_ACCOUNT}:{'role' if kind == 'role' else 'user'}/{name}"
        principal = AwsPrincipal(arn, role=name) if kind == "role" else AwsPrincipal(arn, user=name)
        identities = [side.identities.get(title, _NOTHING) for side in access]
        boundaries = tuple(identity.boundary for identity in identities)
        question = _Question(principal, tuple(identity.statements for identity in identities), boundaries, of_resources)
        for number, action, resource in _allowed_actions(question):
            yield number, Ability(title, action, resource)
        limits = [_permissions_boundary(side, title) for side in sides]
        for number, identity in enumerate(identities):
            yield from ((number, Ability(title, OPAQUE + name, "")) for name in identity.opaque)
            beyond = {limit for limit in limits if limit and limit != limits[number]}
            yield from ((number, Ability(title, WITHOUT_BOUNDARY + limit, "")) for limit in beyond)


def _permissions_boundary(side: Snapshot, title: str) -> str:
    roles = (one for one in side.of_part("role") if f"role {one.inputs.get('name') or one.name}" == title)
    return next((str(one.inputs.get("permissionsBoundary") or "") for one in roles), "")


def _abilities_by_resource_policies(access: Sequence[Access]) -> Iterator[tuple[int, Ability]]:
    """The access that resource policies give to the principals that they name, and to one that they don't name,
    independent of identity-based policies."""
    for what in dict.fromkeys(what for side in access for what in side.owned):
        policies = [side.owned.get(what) for side in access]
        known = next(policy for policy in policies if policy is not None)
        if known.through and None in policies:
            continue  # an endpoint's policy only restricts access
        own: tuple[_Statements, ...] = tuple(() for _ in policies)
        of_resources = tuple(policy.statements if policy else () for policy in policies)
        named = dict.fromkeys(
            name
            for statements in of_resources
            for statement in statements
            for principals in (statement.principals, statement.not_principals)
            for name in principals.get("AWS", ())
            if name != "*"
        )
        for arn in (*named, _ANYBODY):
            question = _Question(
                AwsPrincipal(arn), own, tuple(None for _ in policies), of_resources, "" if known.judged else what
            )
            for number, action, resource in _allowed_actions(question):
                yield number, Ability(_principal_title(arn, access, known), action, resource)


def _principal_title(arn: str, access: Sequence[Access], owned: Owned) -> str:
    if arn == _ANYBODY:
        return EVERYBODY + owned.through
    parts = arn.split(":", 5)
    kind, name = (parts[2], parts[5]) if len(parts) > 5 else ("", arn)
    if kind in ("service", "federated", "canonical"):
        who = f"the {'service' if kind == 'service' else 'identity provider'} {name}"
    elif name == "root":
        who = f"the account {parts[4]}"
    else:
        role = f"role {name.rpartition('/')[2]}"
        who = role if name.startswith("role/") and any(role in one.identities for one in access) else arn
    return who + owned.through


def _allowed_actions(question: _Question) -> Iterator[tuple[int, str, str]]:
    """Yields (side, action, resource) for everything that is allowed."""
    statements = question.all()
    own = own_keys(statements)
    alike: dict[Any, list[str]] = defaultdict(list)
    parts: dict[Any, _Question] = {}
    for action in _actions_to_test(statements):
        about = question.narrowed_to(action)
        if any(statement.allows for statement in about.all()):
            key = tuple(tuple(map(id, row or ())) for row in (*about.own, *about.boundaries, *about.of_resources))
            alike[key].append(action)
            parts[key] = about
    for key, actions in alike.items():
        for number, resource in _allowed_resources(parts[key], actions[0], own):
            yield from ((number, action, resource) for action in actions)


def _actions_to_test(statements: Iterable[PolicyStatement]) -> Iterator[str]:
    """The actions to test: all that are known or named, one for each pattern, and one of an unknown service."""
    named: dict[str, str] = {action.lower(): action for action in known_actions()}
    for pattern in (one for statement in statements for one in (*statement.actions, *statement.not_actions)):
        # A `?` matches itself, and is shown as in the statement. Another letter would not give a real action.
        text = pattern.replace("*", OTHER)
        named.setdefault(text.lower(), f"{OTHER}:{OTHER}" if pattern == "*" else text)
    named[f"{OTHER}:{OTHER}"] = f"{OTHER}:{OTHER}"
    yield from sorted(named.values())


@cache
def known_actions() -> frozenset[str]:
    """The actions that the catalog names, without patterns."""
    rows = table("aws_dl1_access")
    found = {
        action
        for group in (rows["actions"], rows["users"], rows["runs"], rows["endpoints"])
        for entries in group.values()
        for entry in entries
        for action in entry["actions"]
    }
    for service, operations in table("aws_calls")["actions"].items():
        found |= {f"{service}:{action}" for actions in operations.values() for action in actions}
    found |= set(table("aws_review")["actions"]["more"])
    return frozenset(action for action in found if "*" not in action)


def _allowed_resources(question: _Question, action: str, own: Keys) -> Iterator[tuple[int, str]]:
    statements = question.all()
    tried = values_to_test(statements, own)
    for key, value in _undenied_values(question, tried, own).items():
        tried[key] = (value,)
    rounds = [
        (circumstances, {**own, **{key: (value,) for key, value in circumstances.items() if value is not None}})
        for circumstances in combine_circumstances(tried)
    ]
    for resource in _resources_to_test(statements, own) if not question.only else [""]:
        outcomes = [
            (circumstances, question.sides_allowing(Need(action, resource, keys))) for circumstances, keys in rounds
        ]
        left_out = settled_variables(outcomes, tried)
        for circumstances, allowed in outcomes:
            remaining = {key.removeprefix(STAND_IN): one for key, one in circumstances.items() if key not in left_out}
            words = described_resource(question.only or resource, remaining)
            yield from ((number, words) for number in allowed)


def _resources_to_test(statements: Iterable[PolicyStatement], own: Keys) -> list[str]:
    """The resources to test: one for each pattern, and if statements exclude something, one that two patterns share."""
    every = tuple(statements)
    patterns = sorted({text for one in every for text in (*one.resources, *one.not_resources)})
    found = dict.fromkeys(matching_text(text, own) for text in patterns)
    if any(not one.allows or one.not_resources for one in every):
        plain = [text.replace("?", "x") for text in patterns if "*" in text and text != "*" and "${" not in text]
        found |= dict.fromkeys(one for text in plain for one in texts_fitting_pattern(text, plain))
    return [*found, *(["*"] if "*" not in found else [])]


def _undenied_values(
    question: _Question, tried: Mapping[str, Sequence[str | None]], own: Keys
) -> dict[str, str | None]:
    """Condition keys that only Deny statements use, on all sides. For these, one value that avoids the Deny is
    enough."""
    sides = [
        {one.text for row in (question.own[number], question.of_resources[number]) for one in row if not one.allows}
        for number in range(len(question.own))
    ]
    common = set.intersection(*sides)
    denials = [one for one in question.all() if not one.allows and one.text in common]
    others = [one for one in question.all() if one.allows or one.text not in common]
    looked_at = {key.lower() for one in others for _, key, _ in one.conditions}
    found: dict[str, str | None] = {}
    for key, options in tried.items():
        if key.lower() in looked_at:
            continue
        for value in options:
            if not any(_may_deny(one, key, value, own) for one in denials):
                found[key] = value
                break
    return found


def _may_deny(statement: PolicyStatement, key: str, value: str | None, own: Keys) -> bool:
    """Whether a Deny statement may apply with this value, by its conditions on this key."""
    own_conditions = tuple(one for one in statement.conditions if one[1].lower() == key.lower())
    keys = own if value is None else {**own, key: (value,)}
    try:
        return bool(own_conditions) and conditions_hold(own_conditions, keys)
    except (UnknownVariableError, ValueError):
        return True
