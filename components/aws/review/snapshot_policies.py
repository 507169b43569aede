# SPDX-License-Identifier: Apache-2.0
"""Reads the policies of a snapshot: those of identities, and those of resources, which name other principals."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import KNOWN_KEYS, is_operator
from components.aws.iam.documents import PolicyStatement, UnreadableDocumentError, statement_bodies, statements_of
from components.platform.circumstances import OTHER
from components.platform.review import Ability, ReviewedResource, Snapshot
from components.values.resource_types import ResourceType, find_resource_type

PUBLIC = "the whole internet, without signing in,"
OPENERS = "a policy or an ACL"
# The prefix of keys that replace conditions which this implementation does not know.
STAND_IN = f"aws:RequestTag/{OTHER}"
# Kinds of principal that are not ARNs, and their names within made-up ARNs.
_KINDS = {"Service": "service", "Federated": "federated", "CanonicalUser": "canonical"}


@dataclass(frozen=True)
class Identity:
    """`opaque`: policies whose statements are not in the stack, by name."""

    statements: tuple[PolicyStatement, ...] = ()
    boundary: tuple[PolicyStatement, ...] | None = None
    opaque: tuple[str, ...] = ()


@dataclass(frozen=True)
class Owned:
    """The policy of a resource. `judged`: its statements name resources. Otherwise they apply to the resource
    itself."""

    statements: tuple[PolicyStatement, ...]
    judged: bool
    through: str = ""


@dataclass(frozen=True)
class Access:
    """`identities`: by title (`role nodes`). `owned`: by the resource that has the policy. `plain`: abilities that are
    known without evaluating policies."""

    identities: Mapping[str, Identity]
    owned: Mapping[str, Owned]
    plain: frozenset[Ability]
    unread: tuple[str, ...]


def read_access(side: Snapshot) -> Access:
    reader = _Reader(side)
    return Access(
        reader.identities(), reader.owned(), frozenset(_public_bucket_access(side)), tuple(dict.fromkeys(reader.unread))
    )


class _Reader:
    """Reads the documents of one side, and collects those that cannot be parsed."""

    def __init__(self, side: Snapshot) -> None:
        self._side = side
        self.unread: list[str] = []
        # Several of one name, in different paths, count together.
        self._policies: dict[str, list[Any]] = defaultdict(list)
        for policy, row in side.with_rows():
            if row.part == "policy":
                self._policies[_resource_name(policy)].append(policy.inputs.get(row.document))

    def _read(self, name: str, document: Any) -> tuple[PolicyStatement, ...]:
        text = document if isinstance(document, str) else json.dumps(document)
        try:
            return tuple(map(_judgeable_statement, statements_of(text)))
        except UnreadableDocumentError:
            short, digest = " ".join(text.split()), sha256(text.encode()).hexdigest()[:8]
            self.unread.append(f"{name}: {short if len(short) < 120 else f'{short[:100]}… ({digest})'}")
            return ()

    def _read_all(self, name: str, documents: Iterable[Any]) -> tuple[PolicyStatement, ...]:
        return tuple(statement for document in documents for statement in self._read(name, document))

    def identities(self) -> dict[str, Identity]:
        statements: dict[str, list[PolicyStatement]] = defaultdict(list)
        opaque: dict[str, set[str]] = defaultdict(set)
        for kind, name, arn in self._attached():
            title, called = f"{kind} {name}", arn.rpartition("/")[2]
            if called in self._policies and not arn.startswith("arn:aws:iam::aws:"):
                statements[title] += self._read_all(f"the policy {called}", self._policies[called])
            else:
                opaque[title].add(called or arn)
        for kind, name, called, document in self._inline():
            statements[f"{kind} {name}"] += self._read(f"the policy {called} of the {kind} {name}", document)
        boundaries = {f"role {_resource_name(one)}": self._boundary(one) for one in self._side.of_part("role")}
        titles = dict.fromkeys((*statements, *opaque, *boundaries))
        return {
            title: Identity(tuple(statements[title]), boundaries.get(title), tuple(sorted(opaque[title])))
            for title in titles
        }

    def _boundary(self, role: ReviewedResource) -> tuple[PolicyStatement, ...] | None:
        called = str(role.inputs.get("permissionsBoundary") or "").rpartition("/")[2]
        documents = self._policies.get(called)
        return self._read_all(f"the policy {called}", documents) if documents else None

    def _attached(self) -> Iterator[tuple[str, str, str]]:
        for attachment, row in self._side.with_rows():
            if row.part == "policy attachment":
                arn = str(attachment.inputs.get("policyArn"))
                yield from ((kind, name, arn) for kind, name in _holders_of_policy(attachment, row))
        for one in self._side.of_part("role"):
            yield from (("role", _resource_name(one), str(arn)) for arn in one.inputs.get("managedPolicyArns") or ())

    def _inline(self) -> Iterator[tuple[str, str, str, Any]]:
        for policy, row in self._side.with_rows():
            if row.part == "inline policy":
                document = policy.inputs.get(row.document)
                for kind, name in _holders_of_policy(policy, row):
                    yield kind, name, _resource_name(policy), document
        for one in self._side.of_part("role"):
            for inline in one.inputs.get("inlinePolicies") or ():
                yield "role", _resource_name(one), str(inline.get("name")), inline.get("policy")

    def owned(self) -> dict[str, Owned]:
        documents: dict[str, list[Any]] = defaultdict(list)
        names_resources: dict[str, bool] = {}
        for resource, row in self._side.with_rows():
            own = row.own_policy
            if own and (document := resource.inputs.get(own.policy)):
                called = str(resource.inputs.get(own.named_by) or resource.name).rpartition(":")[2]
                documents[f"{own.what} {called}"].append(document)
                names_resources[f"{own.what} {called}"] = own.names_resources
        # A program may give one thing several policies. Which of them counts is not known, so all of them do.
        found = {
            name: Owned(self._read_all(f"the policy of the {name}", given), names_resources[name])
            for name, given in documents.items()
        }
        for one in self._side.of_part("endpoint"):
            service = str(one.inputs.get("serviceName", one.name)).split(".", 3)[-1]
            # The default policy of an endpoint allows every call of its own service.
            actions = f"{service.partition('.')[0]}:*"
            everything = {"Effect": "Allow", "Principal": "*", "Action": actions, "Resource": "*"}
            document = one.inputs.get("policy") or {"Statement": [everything]}
            name = f"the endpoint of {service}"
            # It carries calls of its own service only, whatever its policy allows.
            carried = (
                replace(statement, actions=tuple(actions if action == "*" else action for action in statement.actions))
                for statement in self._read(f"the policy of {name}", document)
            )
            found[name] = Owned(tuple(carried), True, f" through {name}")
        return found


def identity_statements(side: Snapshot) -> tuple[str, ...]:
    """A rehearsal reads only identity-based policies, each in its own text."""
    return tuple(
        json.dumps(statement, sort_keys=True)
        for policy, row in side.with_rows()
        for statement in statement_bodies(policy.inputs.get(row.document))
    )


def without_identity_statements(side: Snapshot, texts: frozenset[str]) -> Snapshot:
    def without_them(policy: ReviewedResource) -> ReviewedResource:
        row = find_resource_type(policy.type)
        if row is None or not (statements := statement_bodies(policy.inputs.get(row.document))):
            return policy
        left = [statement for statement in statements if json.dumps(statement, sort_keys=True) not in texts]
        return replace(policy, inputs={**policy.inputs, row.document: json.dumps({"Statement": left})})

    return replace(side, resources=tuple(map(without_them, side.resources)))


def _holders_of_policy(policy: ReviewedResource, row: ResourceType) -> Iterator[tuple[str, str]]:
    """Kind and name of each principal that a policy or an attachment names."""
    for name, kind in row.holders.items():
        holders = policy.inputs.get(name) or ()
        yield from ((kind, str(holder)) for holder in ([holders] if isinstance(holders, str) else holders))


def _resource_name(resource: ReviewedResource) -> str:
    return str(resource.inputs.get("name") or resource.name)


def _judgeable_statement(statement: PolicyStatement) -> PolicyStatement:
    """The statement with all principals as ARNs, and with unknown conditions replaced by conditions on made-up keys."""
    conditions = []
    for operator, key, values in statement.conditions:
        if is_operator(operator):
            conditions.append((operator, key if KNOWN_KEYS.fullmatch(key) else STAND_IN + key, values))
        else:
            conditions.append(("StringEquals", f"{STAND_IN}{operator} {key} {', '.join(values)}", ("true",)))
    return replace(
        statement,
        conditions=tuple(conditions),
        principals=_as_arns(statement.principals),
        not_principals=_as_arns(statement.not_principals),
    )


def _as_arns(principals: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    if not principals:
        return {}
    named = [*principals.get("AWS", ())]
    for kind, names in principals.items():
        if kind != "AWS":
            named += [f"arn:aws:{_KINDS.get(kind, kind)}:::{name}" for name in names]
    return {"AWS": tuple(f"arn:aws:iam::{name}:root" if name.isdecimal() else name for name in named)}


def _public_bucket_access(side: Snapshot) -> Iterator[Ability]:
    """Public access that bucket settings give, or allow others to give."""
    blocks: dict[str, list[ReviewedResource]] = defaultdict(list)
    for block in side.of_part("public access block"):
        blocks[str(block.inputs.get("bucket"))].append(block)
    for bucket in side.of_part("bucket"):
        name = str(bucket.inputs.get("bucket") or bucket.name)
        for flag in table("aws_review")["public_access_block"]:
            if not blocks[name] or any(block.inputs.get(flag) not in (True, "true") for block in blocks[name]):
                yield Ability(OPENERS, flag, f"arn:aws:s3:::{name}")
    for one in side.of_part("bucket", "bucket acl"):
        acl = str(one.inputs.get("acl") or "")
        if acl.startswith("public"):
            operations = ("s3:ListBucket", "s3:PutObject") if "write" in acl else ("s3:ListBucket",)
            yield from (Ability(PUBLIC, name, f"arn:aws:s3:::{one.inputs.get('bucket')}") for name in operations)
        elif acl.startswith("authenticated"):
            yield Ability("everybody with an account", "s3:ListBucket", f"arn:aws:s3:::{one.inputs.get('bucket')}")
