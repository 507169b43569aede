# SPDX-License-Identifier: Apache-2.0
"""Computes who may do what by the policies of snapshots, for every identity, action and resource that any policy names.

Actions that the same statements cover are evaluated once. A wildcard also covers actions that the catalog does not
know: one made-up action represents them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import (
    AwsPrincipal,
    InForce,
    Need,
    UnknownVariableError,
    decide,
    fits_action,
    hold,
)
from components.aws.iam.documents import PolicyDocument, PolicyStatement
from components.aws.review.access import STAND_IN, Access, Identity, Owned, read
from components.aws.review.conditions import Keys, own_keys, values, witness
from components.platform.circumstances import OTHER, Circumstances, combinations, described, fitting, settled
from components.platform.review import EVERYBODY, UNREAD, Ability, Snapshot

READ = "READ"
OPAQUE = "policy:"
WITHOUT_BOUNDARY = "WITHOUT_BOUNDARY"
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
        rows = (*self.own, *(one or () for one in self.boundaries), *self.of_resources)
        return tuple(statement for row in rows for statement in row)


def abilities(sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
    access = [read(side) for side in sides]
    found = [set(one.plain) for one in access]
    for number, one in enumerate(access):
        found[number] |= {Ability(UNREAD, READ, text) for text in one.unread}
    for number, ability in (*_of_identities(access, sides), *_of_resources(access)):
        found[number].add(ability)
    return tuple(map(frozenset, found))


def _of_identities(access: Sequence[Access], sides: Sequence[Snapshot]) -> Iterator[tuple[int, Ability]]:
    named = tuple(
        tuple(
            statement
            for owned in one.owned.values()
            if owned.judged and not owned.through
            for statement in owned.statements
        )
        for one in access
    )
    for title in dict.fromkeys(title for one in access for title in one.identities):
        rows = [one.identities.get(title, _NOTHING) for one in access]
        boundaries = tuple(row.boundary for row in rows)
        question = _Question(_principal(title), tuple(row.statements for row in rows), boundaries, named)
        for number, action, resource in _answers(question):
            yield number, Ability(title, action, resource)
        for number, row in enumerate(rows):
            yield from ((number, Ability(title, OPAQUE + name, "")) for name in row.opaque)
            if any(_boundary(side, title) for side in sides) and not _boundary(sides[number], title):
                yield number, Ability(title, WITHOUT_BOUNDARY, "")


def _boundary(side: Snapshot, title: str) -> Any:
    roles = (one for one in side.of("aws:iam/role:Role") if f"role {one.inputs.get('name') or one.name}" == title)
    return next((one.inputs.get("permissionsBoundary") for one in roles), None)


def _principal(title: str) -> AwsPrincipal:
    kind, _, name = title.partition(" ")
    arn = f"arn:aws:iam::{_ACCOUNT}:{'role' if kind == 'role' else 'user'}/{name}"
    return AwsPrincipal(arn, role=name) if kind == "role" else AwsPrincipal(arn, user=name)


def _of_resources(access: Sequence[Access]) -> Iterator[tuple[int, Ability]]:
    """The access that resource policies give to the principals that they name, independent of identity-based
    policies."""
    for what in dict.fromkeys(what for one in access for what in one.owned):
        rows = [one.owned.get(what) for one in access]
        known = next(row for row in rows if row is not None)
        if known.through and None in rows:
            continue  # an endpoint's policy only restricts access
        own: tuple[_Statements, ...] = tuple(() for _ in rows)
        of_resources = tuple(row.statements if row else () for row in rows)
        for arn in _named(of_resources):
            question = _Question(
                AwsPrincipal(arn), own, tuple(None for _ in rows), of_resources, "" if known.judged else what
            )
            for number, action, resource in _answers(question):
                yield number, Ability(_title(arn, access, known), action, resource)


def _named(sides: Iterable[_Statements]) -> Iterator[str]:
    """Every principal that a statement names, and one that no statement names."""
    names = dict.fromkeys(
        name
        for statements in sides
        for one in statements
        for principals in (one.principals, one.not_principals)
        for name in principals.get("AWS", ())
        if name != "*"
    )
    yield from (*names, _ANYBODY)


def _title(arn: str, access: Sequence[Access], owned: Owned) -> str:
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


def _answers(question: _Question) -> Iterator[tuple[int, str, str]]:
    """Yields (side, action, resource) for everything that is allowed."""
    statements = question.all()
    own = own_keys(statements)
    alike: dict[Any, list[str]] = defaultdict(list)
    parts: dict[Any, _Question] = {}
    for action in _actions(statements):
        about = _about(question, action)
        if any(one.allows for one in about.all()):
            key = tuple(tuple(map(id, row or ())) for row in (*about.own, *about.boundaries, *about.of_resources))
            alike[key].append(action)
            parts[key] = about
    for key, actions in alike.items():
        for number, resource in _allowed(parts[key], actions[0], own):
            yield from ((number, action, resource) for action in actions)


def _about(question: _Question, action: str) -> _Question:
    def fitting_ones(statements: _Statements) -> _Statements:
        return tuple(one for one in statements if _names_action(one, action))

    return _Question(
        question.principal,
        tuple(map(fitting_ones, question.own)),
        tuple(None if one is None else fitting_ones(one) for one in question.boundaries),
        tuple(map(fitting_ones, question.of_resources)),
        question.only,
    )


def _names_action(statement: PolicyStatement, action: str) -> bool:
    if statement.actions:
        return any(fits_action(one, action) for one in statement.actions)
    return bool(statement.not_actions) and not any(fits_action(one, action) for one in statement.not_actions)


def _actions(statements: Iterable[PolicyStatement]) -> Iterator[str]:
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


def _allowed(question: _Question, action: str, own: Keys) -> Iterator[tuple[int, str]]:
    statements = question.all()
    tried = values(statements, own)
    for key, value in _undenied(question, tried, own).items():
        tried[key] = (value,)
    rounds = [(circumstances, _keys(own, circumstances)) for circumstances in combinations(tried)]
    for resource in _resources(statements, own) if not question.only else [""]:
        outcomes = [(circumstances, _decided(question, Need(action, resource, keys))) for circumstances, keys in rounds]
        left_out = settled(outcomes, tried)
        for circumstances, allowed in outcomes:
            remaining = {key.removeprefix(STAND_IN): one for key, one in circumstances.items() if key not in left_out}
            words = described(question.only or resource, remaining)
            yield from ((number, words) for number in allowed)


def _keys(own: Keys, circumstances: Circumstances) -> Keys:
    return {**own, **{key: (value,) for key, value in circumstances.items() if value is not None}}


def _decided(question: _Question, need: Need) -> tuple[int, ...]:
    """The sides that allow the action."""
    return tuple(
        number
        for number in range(len(question.own))
        if decide(need, question.principal, _in_force(question, number)).allowed
    )


def _in_force(question: _Question, number: int) -> InForce:
    boundary = question.boundaries[number]
    return InForce(
        identity=(PolicyDocument("", question.own[number]),),
        boundaries=() if boundary is None else (PolicyDocument("", boundary),),
        of_resource=(PolicyDocument("", question.of_resources[number]),),
    )


def _resources(statements: Iterable[PolicyStatement], own: Keys) -> list[str]:
    """The resources to test: one for each pattern, and if statements exclude something, one that two patterns share."""
    every = tuple(statements)
    patterns = sorted({text for one in every for text in (*one.resources, *one.not_resources)})
    found = dict.fromkeys(witness(text, own) for text in patterns)
    if any(not one.allows or one.not_resources for one in every):
        plain = [text.replace("?", "x") for text in patterns if "*" in text and text != "*" and "${" not in text]
        found |= dict.fromkeys(one for text in plain for one in fitting(text, plain))
    return [*found, *(["*"] if "*" not in found else [])]


def _undenied(question: _Question, tried: Mapping[str, Sequence[str | None]], own: Keys) -> dict[str, str | None]:
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
            if not any(_denies(one, key, value, own) for one in denials):
                found[key] = value
                break
    return found


def _denies(statement: PolicyStatement, key: str, value: str | None, own: Keys) -> bool:
    """Whether a Deny statement may apply with this value, by its conditions on this key."""
    own_conditions = tuple(one for one in statement.conditions if one[1].lower() == key.lower())
    keys = own if value is None else {**own, key: (value,)}
    try:
        return bool(own_conditions) and hold(own_conditions, keys)
    except (UnknownVariableError, ValueError):
        return True
