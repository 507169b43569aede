# SPDX-License-Identifier: Apache-2.0
"""Reads who currently has access to a stack on AWS: its role, its policies, and other grants in the account.

An account has many policies, and most do not matter here, such as those of administrators. A statement counts if it
names a resource of the stack (its bucket, repository or role), if its principal is one to which the stack gives rights,
or if it was added after the stack was made. Policies
that other stacks of trainyard made are left out, because their own files declare them. That a stack made one is shown
by its state: tags only claim it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from components.aws.client.live_values import record_aws_tags
from components.aws.iam.decide import fits_action, fits_arn
from components.aws.iam.documents import canonical_document, document_texts, parsed_document, statement_bodies
from components.aws.types import RESOURCE_TYPES, SERVED_TYPES
from components.platform.calls import call_of
from components.platform.live import LiveQuestion, Reading, StackClaim
from components.platform.review import Snapshot
from components.s3 import Session, call_aws, list_aws_pages
from components.values.resource_types import Part

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
MEMBERSHIP = "aws:iam/userGroupMembership:UserGroupMembership"
PROFILE = "aws:iam/instanceProfile:InstanceProfile"


def _types_by_holder(part: Part) -> dict[str, str]:
    """The types of policies that one principal holds, by its kind."""
    rows = (row for row in RESOURCE_TYPES.values() if row.part == part and len(row.holders) == 1)
    return {kind: row.token for row in rows for kind in row.holders.values()}


ATTACHMENTS, INLINE = _types_by_holder("policy attachment"), _types_by_holder("inline policy")
READ_TYPES = frozenset({ROLE, POLICY, PROFILE, *ATTACHMENTS.values()})
JUDGED: Mapping[str, frozenset[str]] = {POLICY: frozenset({"policy"})}
_KINDS = {"role": "RoleDetailList", "group": "GroupDetailList", "user": "UserDetailList"}
# Service-linked roles, which AWS makes and maintains.
_OF_SERVICES = "/aws-service-role/"
# Policies that AWS makes and maintains.
_OF_AWS = "arn:aws:iam::aws:"
_ANOTHER = "another-0f0e0d"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class HeldPolicy:
    """A policy that a principal has. `policy`: its ARN, or empty for an inline policy."""

    kind: str
    principal: str
    policy: str
    name: str
    document: Any
    made: datetime | None

    def is_declared_in(self, state: Snapshot) -> bool:
        """Whether a stack gives the principal this policy with this text."""
        named = {"policyArn": self.policy} if self.policy else {"name": self.name}
        holder = {self.kind: self.principal, **named}.items()
        types = ATTACHMENTS if self.policy else INLINE
        held = [resource for resource in state.of(types[self.kind]) if holder <= resource.inputs.items()]
        with_text = [policy for policy in state.of(POLICY) if policy.id == self.policy] if self.policy else held
        live = canonical_document(parsed_document(self.document))
        return bool(held) and any(canonical_document(one.inputs.get("policy")) == live for one in with_text)


class AccessReader:
    def __init__(self, question: LiveQuestion, session: Session, reading: Reading) -> None:
        self._question, self._session, self._reading = question, session, reading
        self._declared = question.declared
        self._call = call_of("drift", question.where.tell)

    def read(self) -> None:
        account = self._reading.allowed("who may do what in the account", self._account)
        if account is None:
            return
        roles = {row["RoleName"]: row for row in account["RoleDetailList"]}
        self._roles(roles)
        policies = {row["Arn"]: row for row in account["Policies"]}
        self._policies(policies)
        held = list(_held_policies(account, policies))
        self._attachments(held)
        users = {
            (kind, str(resource.inputs[kind]))
            for types in (ATTACHMENTS, INLINE)
            for kind, type_ in types.items()
            for resource in self._declared.of(type_)
        }
        made = min((one for one in self._moments(roles, policies) if one), default=None)
        caller = tuple(self._caller(account))
        for one in held:
            self._others(one, account, made, caller, is_users=(one.kind, one.principal) in users)
        groups = {name for kind, name in users if kind == "group"}
        for user in account["UserDetailList"]:
            self._members(user, groups, made)

    def _account(self) -> dict[str, list[Any]]:
        """Principals and policies of the account, without the thousand policies that AWS manages."""
        wanted = ["User", "Role", "Group", "LocalManagedPolicy"]
        client = self._session.client("iam")
        listing = list_aws_pages(
            self._call, "List who may do what", client, "get_account_authorization_details", Filter=wanted
        )
        principals: dict[str, list[Any]] = {key: [] for key in (*_KINDS.values(), "Policies")}
        for page in listing:
            for key, rows in principals.items():
                rows += page.get(key) or ()
        return principals

    def _roles(self, roles: Mapping[str, Row]) -> None:
        profiles = {
            one["InstanceProfileName"]: name
            for name, row in roles.items()
            for one in row.get("InstanceProfileList") or ()
        }
        for one, row in self._reading.present(self._declared.of(ROLE), roles):
            text = _same_text(one.inputs.get("assumeRolePolicy"), row["AssumeRolePolicyDocument"])
            self._reading.record(one, {"assumeRolePolicy": text})
            record_aws_tags(self._reading, one, "tags", row.get("Tags") or ())
        for one in self._declared.of(PROFILE):
            self._reading.record(one, {"role": profiles.get(one.id, "none")})

    def _policies(self, policies: Mapping[str, Row]) -> None:
        for one, row in self._reading.present(self._declared.of(POLICY), policies):
            self._reading.record(one, {"policy": _same_text(one.inputs.get("policy"), _default_document(row))})

    def _attachments(self, held: list[HeldPolicy]) -> None:
        """The stack's own attachments, and further ones on its own role."""
        there = {(one.kind, one.principal, one.policy) for one in held}
        declared = set()
        for kind, type_ in ATTACHMENTS.items():
            for one in self._declared.of(type_):
                place = (kind, str(one.inputs.get(kind)), str(one.inputs.get("policyArn")))
                declared.add(place)
                if place not in there:
                    self._reading.record_missing(one)
        ours = {one.id for one in self._declared.of(ROLE)}
        for policy in held:
            place = (policy.kind, policy.principal, policy.policy)
            if policy.kind == "role" and policy.principal in ours and place not in declared:
                self._add(policy, policy.document)

    def _members(self, user: Row, groups: Set[str], made: datetime | None) -> None:
        """A user who is newer than the stack, and in a group of its users. AWS has no date of a membership."""
        for group in sorted(groups & {*(user.get("GroupList") or ())}):
            title = f"user {user['UserName']}"
            if made and user["CreateDate"] > made and title not in self._question.known:
                inputs = {"user": user["UserName"], "groups": [group]}
                words = f"{title}, made on {user['CreateDate']:%Y-%m-%d}, in the group {group}"
                self._reading.add(MEMBERSHIP, f"{user['UserName']}/{group}", inputs, words)

    def _others(
        self,
        one: HeldPolicy,
        account: Mapping[str, Any],
        made: datetime | None,
        caller: tuple[str, ...],
        is_users: bool,
    ) -> None:
        """Statements of others that count. The deployer's own policies name the stack's resources, too: those of the
        caller are left out unless they are newer than the stack. `is_users`: the stack gives rights to the principal,
        so any other right of it counts, too."""
        own = {resource.id for resource in self._declared.of(ROLE, POLICY)}
        title = f"{one.kind} {one.principal}"
        if one.policy in own or (one.kind == "role" and one.principal in own) or title in self._question.known:
            return
        newer = made is not None and one.made is not None and one.made > made
        if title in caller and not newer:
            return
        is_known = bool(one.policy) and not newer and f"policy {one.name}" in self._question.known
        if is_users and (is_known or one.is_declared_in(self._declared)):
            return
        bodies = [row for row in statement_bodies(one.document) if isinstance(row, Mapping)]
        allowed = [row for row in bodies if row.get("Effect") == "Allow"]
        statements = allowed if is_users else [row for row in allowed if self._counts(row, newer)]
        counts = is_users or bool(statements)
        claim = self._question.claim_in(self._tags_of(one, account)) if counts else None
        if counts and not (claim and claim.is_true(one.is_declared_in)):
            # AWS's own policies are not in the answer: their names say what they allow.
            document = {**parsed_document(one.document), "Statement": statements} if one.document else None
            self._add(one, document, claim)

    def _add(self, one: HeldPolicy, document: Any, claim: StackClaim | None = None) -> None:
        """Adds a principal's policy, in the form of the program's inputs."""
        text = json.dumps(parsed_document(document), sort_keys=True) if document else ""
        words = f"policy {one.name} of the {one.kind} {one.principal}"
        identity = f"{one.kind}/{one.principal}/{one.policy or one.name}"
        if one.policy:
            inputs = {one.kind: one.principal, "policyArn": one.policy}
            if text:
                policy = {"name": one.name, "policy": text}
                self._reading.add(POLICY, one.policy, policy, "")
            self._reading.add(ATTACHMENTS[one.kind], identity, inputs, words, claim=claim)
        else:
            inputs = {one.kind: one.principal, "name": one.name, "policy": text}
            self._reading.add(INLINE[one.kind], identity, inputs, words, claim=claim)

    def _counts(self, statement: Row, newer: bool) -> bool:
        patterns = document_texts(statement.get("Resource", []))
        if not patterns:  # NotResource covers everything but the named resources.
            return newer and any(_allows_service(statement, service) for service in ("s3", "ecr", "iam"))
        for service, arn, another in self._things():
            reaches = _allows_service(statement, service) and any(fits_arn(one, arn) for one in patterns)
            if reaches and (newer or not any(fits_arn(one, another) for one in patterns)):
                return True
        return False

    def _things(self) -> Iterator[tuple[str, str, str]]:
        """For each resource of the stack: the service, its ARN, and the ARN of another resource of the same kind."""
        place = {"account": self._session.account, "region": self._session.region_name}
        for resource in self._declared.resources:
            row = SERVED_TYPES.get(resource.type)
            name = resource.id.rpartition(":")[2]  # the id of a secret is its ARN
            for service, arns in (row.arns if row else {}).items():
                for arn in arns.split():
                    yield service, arn.format(id=name, **place), arn.format(id=_ANOTHER, **place)

    def _tags_of(self, one: HeldPolicy, account: Mapping[str, Any]) -> dict[str, str]:
        """The tags of the policy, or those of the principal with this inline policy."""
        if one.policy.startswith(_OF_AWS):
            return {}
        if not one.policy:
            rows = account[_KINDS[one.kind]]
            name = f"{one.kind.capitalize()}Name"
            tags = next((row.get("Tags") or () for row in rows if row[name] == one.principal), ())
        else:
            client = self._session.client("iam")
            what = f"the tags of the policy {one.name}"
            ask = self._reading.allowed(
                what,
                lambda: call_aws(self._call, f"Read {what}", lambda: client.list_policy_tags(PolicyArn=one.policy)),
            )
            tags = (ask or {}).get("Tags") or ()
        return {tag["Key"]: tag["Value"] for tag in tags}

    def _moments(self, roles: Mapping[str, Row], policies: Mapping[str, Row]) -> Iterator[datetime | None]:
        """When parts of the stack were made."""
        for one in self._declared.of(ROLE):
            yield (roles.get(one.id) or {}).get("CreateDate")
        for one in self._declared.of(POLICY):
            yield (policies.get(one.id) or {}).get("CreateDate")

    def _caller(self, account: Mapping[str, Any]) -> Iterator[str]:
        """The calling principal, with its groups. The deployer's own policies name the stack's resources, too."""
        arn = self._reading.allowed(
            "who asks",
            lambda: call_aws(
                self._call, "Ask who calls", lambda: self._session.client("sts").get_caller_identity()["Arn"]
            ),
        )
        kind, _, name = str(arn or "").rpartition(":")[2].partition("/")
        if kind == "user":
            user = name.rpartition("/")[2]
            groups = (row.get("GroupList") or () for row in account["UserDetailList"] if row["UserName"] == user)
            yield from (f"user {user}", *(f"group {group}" for listed in groups for group in listed))
        elif kind == "assumed-role":
            yield f"role {name.partition('/')[0]}"


def _held_policies(account: Mapping[str, Any], policies: Mapping[str, Row]) -> Iterator[HeldPolicy]:
    for kind, key in _KINDS.items():
        for row in account[key]:
            if row.get("Path", "/").startswith(_OF_SERVICES):
                continue
            name, made = str(row[f"{kind.capitalize()}Name"]), row.get("CreateDate")
            for one in row.get(f"{kind.capitalize()}PolicyList") or ():
                yield HeldPolicy(kind, name, "", one["PolicyName"], one["PolicyDocument"], made)
            for one in row.get("AttachedManagedPolicies") or ():
                policy = policies.get(one["PolicyArn"])
                moments = [made, policy.get("UpdateDate") or policy.get("CreateDate") if policy else None]
                newest = max((moment for moment in moments if moment), default=None)
                document = _default_document(policy) if policy else None
                yield HeldPolicy(kind, name, one["PolicyArn"], one["PolicyName"], document, newest)


def _default_document(policy: Row) -> Any:
    """The policy document of the default version."""
    versions = policy.get("PolicyVersionList") or ()
    return parsed_document(next((one.get("Document") for one in versions if one.get("IsDefaultVersion")), None))


def _same_text(given: Any, live: Any) -> Any:
    """The live document as a text: the declared one if it says the same."""
    parsed = parsed_document(live)
    return given if parsed_document(given) == parsed else json.dumps(parsed, sort_keys=True)


def _allows_service(statement: Row, service: str) -> bool:
    """Whether the statement allows any action of a service. `NotAction` allows most actions of every other service."""
    actions = document_texts(statement.get("Action", []))
    if not actions:
        return not any(fits_action(one, f"{service}:any") for one in document_texts(statement.get("NotAction", [])))
    return any(one == "*" or one.lower().split(":")[0] == service for one in actions)
