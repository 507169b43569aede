# SPDX-License-Identifier: Apache-2.0
"""The decision about one action on one resource: an explicit denial first, then who allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.aws_dl1.iam.conditions import Keys, UnknownConditionError, hold
from components.aws_dl1.iam.documents import PolicyDocument, PolicyStatement
from components.aws_dl1.iam.patterns import UnknownVariableError, filled, fits_action, fits_arn


@dataclass(frozen=True)
class AwsPrincipal:
    """`user` is set for a user, `role` and `session` for a session of a role. `instance` if it is an instance's."""

    arn: str
    user: str = ""
    role: str = ""
    session: str = ""
    instance: str = ""
    id: str = ""
    session_policy: str = ""

    @property
    def kind(self) -> str:
        return "user" if self.user else "role"

    @property
    def name(self) -> str:
        return self.user or self.role

    @property
    def account(self) -> str:
        return self.arn.split(":")[4] if self.arn else ""


@dataclass(frozen=True)
class Need:
    """One action on one resource, with the keys that conditions may ask."""

    action: str
    resource: str
    keys: Keys


@dataclass(frozen=True)
class InForce:
    """The policies that decide about a principal's call. `boundaries` limit it: each must allow, too."""

    identity: Sequence[PolicyDocument]
    boundaries: Sequence[PolicyDocument] = ()
    of_resource: Sequence[PolicyDocument] = ()
    unreadable: str = ""


@dataclass(frozen=True)
class Decision:
    """`by` is the statement that decided, as (policy, statement). `why` explains a refusal in AWS's words."""

    allowed: bool
    by: tuple[tuple[str, str], ...]
    why: str = ""


def decide(need: Need, principal: AwsPrincipal, policies: InForce) -> Decision:
    """Whether the policies in force allow it."""
    if policies.unreadable:
        return Decision(False, (), f"with an explicit deny in {policies.unreadable}, which cannot be read")
    groups = (("identity-based", policies.identity), ("permissions boundary", policies.boundaries))
    for kind, documents in groups:
        for document, statement in _matching(documents, need, False):
            return Decision(False, ((document, statement),), f"with an explicit deny in an {kind} policy")
    for document, statement in _matching(policies.of_resource, need, False, principal):
        return Decision(False, ((document, statement),), "with an explicit deny in a resource-based policy")
    for boundary in policies.boundaries:
        if not any(_matching([boundary], need, True)):
            return Decision(False, (), f"because no {boundary.name} allows the {need.action} action")
    allowed = tuple(_matching(policies.identity, need, True))
    allowed += tuple(_matching(policies.of_resource, need, True, principal))
    if allowed:
        return Decision(True, allowed)
    return Decision(False, (), f"because no identity-based policy allows the {need.action} action")


def trusts(document: PolicyDocument, keys: Keys, service: str = "", principal: AwsPrincipal | None = None) -> bool:
    """Whether a role's trust policy lets a service, or a principal, take on the role."""
    need = Need("sts:AssumeRole", "", keys)
    named = principal or AwsPrincipal("")
    if any(_matching([document], need, False, named, service)):
        return False
    return any(_matching([document], need, True, named, service))


def _matching(
    documents: Sequence[PolicyDocument], need: Need, allows: bool, principal: AwsPrincipal | None = None,
    service: str = "",
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """The statements of one effect that are about this. What cannot be judged denies, and never allows."""
    for document in documents:
        for statement in document.statements:
            if statement.allows != allows:
                continue
            if principal is not None and not _names(statement, principal, service):
                continue
            try:
                if _is_about(statement, need) and hold(statement.conditions, need.keys):
                    yield document.name, statement.text
            except (UnknownConditionError, UnknownVariableError, ValueError):
                if not allows:
                    yield document.name, statement.text


def _is_about(statement: PolicyStatement, need: Need) -> bool:
    if statement.actions:
        acts = any(fits_action(one, need.action) for one in statement.actions)
    else:
        acts = bool(statement.not_actions) and not any(fits_action(one, need.action) for one in statement.not_actions)
    if not acts:
        return False
    if need.resource == "":  # a trust policy has no resources: the role is its resource
        return True
    if statement.resources:
        return any(fits_arn(filled(one, need.keys), need.resource) for one in statement.resources)
    if not statement.not_resources:
        return False
    return not any(fits_arn(filled(one, need.keys), need.resource) for one in statement.not_resources)


def _names(statement: PolicyStatement, principal: AwsPrincipal, service: str) -> bool:
    """Whether a statement's `Principal` is this principal, or its `NotPrincipal` another one. The whole account only
    hands the question on to IAM, except where it denies."""
    if statement.not_principals:
        return not _is_among(statement.not_principals, not statement.allows, principal, service)
    return _is_among(statement.principals, statement.allows, principal, service)


def _is_among(named: Mapping[str, Sequence[str]], allows: bool, principal: AwsPrincipal, service: str) -> bool:
    if service:
        return service in named.get("Service", ())
    own = {principal.arn, "*"}
    if principal.role:
        own.add(f"arn:aws:iam::{principal.account}:role/{principal.role}")
    account = {principal.account, f"arn:aws:iam::{principal.account}:root"}
    names = set(named.get("AWS", ()))
    if any(name.rpartition("/")[2] == principal.role for name in names if principal.role and ":role/" in name):
        return True
    return bool(names & own) or (not allows and bool(names & account))
