# SPDX-License-Identifier: Apache-2.0
"""The decision about one action on one resource: an explicit Deny first, then the statements that allow it."""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from typing import Any

from components.aws.iam.documents import PolicyDocument, PolicyStatement

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_LITERALS = {"*": "*", "?": "?", "$": "$"}
# In a pattern, each of these stands for the sign that a variable's value has, which is then no wildcard and no
# separator. They are noncharacters of Unicode, so no name contains them.
_ESCAPED = {"*": "\ufdd0", "?": "\ufdd1", ":": "\ufdd2"}
_ESCAPES = str.maketrans(_ESCAPED)
_UNESCAPES = str.maketrans({escaped: sign for sign, escaped in _ESCAPED.items()})
Keys = Mapping[str, Sequence[str]]
# The condition keys that requests here have, where AWS gives them. A condition on another key cannot be evaluated: it
# never allows, and always denies. A name that ends with `/` is followed by a tag's key. A test compares this list with
# the keys of real requests.
REQUEST_KEYS = (
    "aws:CurrentTime", "aws:EpochTime", "aws:PrincipalAccount", "aws:PrincipalArn", "aws:PrincipalTag/",
    "aws:PrincipalType", "aws:RequestTag/", "aws:RequestedRegion", "aws:ResourceAccount", "aws:ResourceTag/",
    "aws:SecureTransport", "aws:SourceAccount", "aws:SourceIp", "aws:TagKeys", "aws:TokenIssueTime", "aws:userid",
    "aws:username", "aws:ViaAWSService", "ec2:CreateAction", "ec2:InstanceType", "ec2:MetadataHttpTokens", "ec2:Region",
    "ec2:ResourceTag/", "ecr:ResourceTag/", "iam:AWSServiceName", "iam:PassedToService", "iam:PermissionsBoundary",
    "iam:PolicyARN", "iam:ResourceTag/",
    "s3:RequestObjectTag/", "s3:delimiter", "s3:if-none-match", "s3:max-keys", "s3:prefix", "s3:x-amz-acl",
    "s3:x-amz-server-side-encryption", "secretsmanager:ResourceTag/", "ssm:resourceTag/", "sts:ExternalId",
    "sts:RoleSessionName",
)  # fmt: skip
KNOWN_KEYS = re.compile(
    "|".join(f"{re.escape(name)}.+" if name.endswith("/") else re.escape(name) for name in REQUEST_KEYS), re.IGNORECASE
)


class UnknownVariableError(Exception):
    """A policy variable for which this request has no value."""


def fits_wildcards(pattern: str, text: str) -> bool:
    """Whether the text matches a pattern. Backtracks only to the last `*`, so patterns with many `*` stay fast."""
    place = at = 0
    star, mark = -1, 0
    while at < len(text):
        sign = pattern[place] if place < len(pattern) else ""
        if sign and sign != "*" and (sign == "?" or literal_text(sign) == text[at]):
            place, at = place + 1, at + 1
        elif sign == "*":
            star, mark = place, at
            place += 1
        elif star >= 0:
            mark += 1
            place, at = star + 1, mark
        else:
            return False
    return not pattern[place:].strip("*")


def fits_action(pattern: str, action: str) -> bool:
    """Whether an action matches a pattern, ignoring case."""
    return fits_wildcards(pattern.lower(), action.lower())


def fits_arn(pattern: str, arn: str) -> bool:
    """Whether an ARN matches a pattern. A wildcard in one of the first five parts matches no colon."""
    if pattern == "*" or arn == "*":
        return pattern == "*"
    wanted, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(parts) and all(
        fits_wildcards(one, other) for one, other in zip(wanted, parts, strict=True)
    )


def _key_values(name: str, keys: Keys) -> Sequence[str] | None:
    """The values of a key. Case does not matter, but two tags may differ in nothing else: then the exact one counts."""
    found = keys.get(name)
    return found if found is not None else next((one for key, one in keys.items() if key.lower() == name.lower()), None)


def literal_text(pattern: str) -> str:
    """The text of a filled-in pattern without wildcards."""
    return pattern.translate(_UNESCAPES)


def fill_policy_variables(text: str, keys: Mapping[str, Sequence[str]]) -> str:
    """The text as a pattern, with variables replaced by the request's values. Wildcards in values are literal."""

    def value(match: re.Match[str]) -> str:
        name = match[1].split(",")[0].strip()
        if name in _LITERALS:
            return _LITERALS[name].translate(_ESCAPES)
        values = _key_values(name, keys) or ()
        if len(values) != 1:
            raise UnknownVariableError(name)
        return values[0].translate(_ESCAPES)

    return _VARIABLE.sub(value, text) if "${" in text else text


class UnknownConditionError(Exception):
    """A condition whose operator or key the local AWS does not know."""


def conditions_hold(conditions: Sequence[tuple[str, str, tuple[str, ...]]], keys: Keys) -> bool:
    """Whether all conditions hold. Raises UnknownConditionError if one of them cannot be evaluated."""
    for operator, key, wanted in conditions:
        if not KNOWN_KEYS.fullmatch(key):
            raise UnknownConditionError(f"the condition key {key}")
        if not condition_holds(operator, key, wanted, keys):
            return False
    return True


def condition_holds(operator: str, key: str, wanted: Sequence[str], keys: Keys) -> bool:
    """Whether one condition holds for a request with these keys, and no others. Raises UnknownConditionError."""
    values = _key_values(key, keys)
    if not is_operator(operator):
        raise UnknownConditionError(f"the operator {operator}")
    quantity, name, if_there = _split_operator(operator)
    if name == "Null":
        return any((values is None) == (text.lower() == "true") for text in wanted)
    compare, negative = _COMPARED[_NEGATED.get(name, name)], name in _NEGATED
    if values is None:
        # Without the key, there is no value that could match.
        return if_there or quantity == "ForAllValues" or (negative and not quantity)
    texts = [fill_policy_variables(text, keys) for text in wanted]
    if compare not in (fits_wildcards, fits_arn):
        texts = [literal_text(text) for text in texts]
    fitting = [any(compare(text, value) for text in texts) != negative for value in values]
    return all(fitting) if quantity == "ForAllValues" or (negative and not quantity) else any(fitting)


def is_operator(operator: str) -> bool:
    """Whether IAM has an operator of this name."""
    quantity, name, if_there = _split_operator(operator)
    if name == "Null":
        return quantity == "" and not if_there
    return (name in _COMPARED or name in _NEGATED) and quantity in ("", "ForAllValues", "ForAnyValue")


def _split_operator(operator: str) -> tuple[str, str, bool]:
    """The operator's quantifier, its name, and whether it also holds without the key (`IfExists`)."""
    quantity, _, rest = operator.rpartition(":")
    return quantity, rest.removesuffix("IfExists"), rest.endswith("IfExists")


def _compare_parsed(parse: Callable[[str], Any], compare: Callable[[Any, Any], bool]) -> Callable[[str, str], bool]:
    return lambda wanted, value: compare(parse(value), parse(wanted))


def _parse_date(text: str) -> datetime:
    """Reads a date as IAM does: in ISO 8601, in UTC if it has no time zone, or as seconds since 1970."""
    if text.isdecimal() and len(text) > len("2026"):
        return datetime.fromtimestamp(int(text), UTC)
    if text.isdecimal():
        text = f"{text}-01-01"
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_address_within(wanted: str, value: str) -> bool:
    return ip_address(value) in ip_network(wanted, strict=False)


def _is_same_text_in_any_case(wanted: str, value: str) -> bool:
    return wanted.lower() == value.lower()


_ORDERS = {
    "Equals": operators.eq, "LessThan": operators.lt, "LessThanEquals": operators.le, "GreaterThan": operators.gt,
    "GreaterThanEquals": operators.ge,
}  # fmt: skip
# operator: function that compares a wanted text with a value
_COMPARED: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": operators.eq, "StringEqualsIgnoreCase": _is_same_text_in_any_case, "StringLike": fits_wildcards,
    "ArnEquals": fits_arn, "ArnLike": fits_arn, "Bool": _is_same_text_in_any_case, "BinaryEquals": operators.eq,
    "IpAddress": _is_address_within,
    **{f"Numeric{order}": _compare_parsed(float, compare) for order, compare in _ORDERS.items()},
    **{f"Date{order}": _compare_parsed(_parse_date, compare) for order, compare in _ORDERS.items()},
}  # fmt: skip
# negation: the operator that it negates
_NEGATED = {
    "StringNotEquals": "StringEquals", "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike", "ArnNotEquals": "ArnEquals", "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals", "DateNotEquals": "DateEquals", "NotIpAddress": "IpAddress",
}  # fmt: skip


@dataclass(frozen=True)
class AwsPrincipal:
    """`user`: set for a user. `role`, `role_arn` and `session`: set for a session of a role. `since`: when it began.
    `instance`: also set if an instance has the session. `tags`: those of the user or role."""

    arn: str
    user: str = ""
    role: str = ""
    session: str = ""
    instance: str = ""
    id: str = ""
    session_policy: str = ""
    role_arn: str = ""
    since: str = ""
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def identity_arn(self) -> str:
        """The ARN of the user, or of the role behind a session."""
        return self.role_arn or (f"arn:aws:iam::{self.account}:role/{self.role}" if self.role else self.arn)

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
    """One action on one resource, with the keys that conditions may compare."""

    action: str
    resource: str
    keys: Keys


@dataclass(frozen=True)
class InForce:
    """The policies that apply to a principal's call. `boundaries`: each of them must allow the call, too. `delegated`:
    identity-based policies count only if the resource's policy allows the call to the account."""

    identity: Sequence[PolicyDocument]
    boundaries: Sequence[PolicyDocument] = ()
    of_resource: Sequence[PolicyDocument] = ()
    unreadable: str = ""
    delegated: bool = False


@dataclass(frozen=True)
class Decision:
    """`by`: the statements that decided, as (policy, statement). `why`: the reason for a refusal, in AWS's words."""

    allowed: bool
    by: tuple[tuple[str, str], ...]
    why: str = ""


def decide_aws_call(need: Need, principal: AwsPrincipal, policies: InForce) -> Decision:
    """Whether the policies in force allow the call."""
    if policies.unreadable:
        return Decision(False, (), f"with an explicit deny in {policies.unreadable}, which cannot be read")
    groups = (("identity-based", policies.identity), ("permissions boundary", policies.boundaries))
    for kind, documents in groups:
        for document, statement in _matching_statements(documents, need, False):
            return Decision(False, ((document, statement),), f"with an explicit deny in an {kind} policy")
    for document, statement in _matching_statements(policies.of_resource, need, False, principal):
        return Decision(False, ((document, statement),), "with an explicit deny in a resource-based policy")
    for boundary in policies.boundaries:
        if not any(_matching_statements([boundary], need, True)):
            return Decision(False, (), f"because no {boundary.name} allows the {need.action} action")
    account = AwsPrincipal(f"arn:aws:iam::{principal.account}:root")
    counts = not policies.delegated or any(_matching_statements(policies.of_resource, need, True, account))
    allowed = tuple(_matching_statements(policies.identity, need, True)) if counts else ()
    allowed += tuple(_matching_statements(policies.of_resource, need, True, principal))
    if allowed:
        return Decision(True, allowed)
    return Decision(False, (), f"because no identity-based policy allows the {need.action} action")


def trusts_principal(
    document: PolicyDocument, keys: Keys, service: str = "", principal: AwsPrincipal | None = None
) -> bool:
    """Whether a role's trust policy allows a service or a principal to assume the role. Trust in the principal's
    account is enough: the caller has checked that the principal's own policies allow it."""
    need = Need("sts:AssumeRole", "", keys)
    named = principal or AwsPrincipal("")
    if any(_matching_statements([document], need, False, named, service)):
        return False
    account = AwsPrincipal(f"arn:aws:iam::{named.account}:root")
    return any(any(_matching_statements([document], need, True, one, service)) for one in (named, account))


def _matching_statements(
    documents: Sequence[PolicyDocument], need: Need, allows: bool, principal: AwsPrincipal | None = None,
    service: str = "",
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """The statements with this effect that match. One that cannot be evaluated counts as a match for Deny, and never
    for Allow."""
    for document in documents:
        for statement in document.statements:
            if statement.allows != allows:
                continue
            # `Principal` has to match, or `NotPrincipal` must not. An Allow for the whole account grants nothing
            # itself: identity-based policies decide. A Deny for the account counts.
            excluded = bool(statement.not_principals)
            named = statement.not_principals or statement.principals
            if principal and _names_principal(named, statement.allows != excluded, principal, service) == excluded:
                continue
            try:
                if _covers_need(statement, need) and conditions_hold(statement.conditions, need.keys):
                    yield document.name, statement.text
            except (UnknownConditionError, UnknownVariableError, ValueError):
                if not allows:
                    yield document.name, statement.text


def covers_action(statement: PolicyStatement, action: str) -> bool:
    if statement.actions:
        return any(fits_action(one, action) for one in statement.actions)
    return bool(statement.not_actions) and not any(fits_action(one, action) for one in statement.not_actions)


def _covers_need(statement: PolicyStatement, need: Need) -> bool:
    if not covers_action(statement, need.action):
        return False
    if need.resource == "":  # a trust policy names no resources: it is about its role
        return True
    if statement.resources:
        return any(fits_arn(fill_policy_variables(one, need.keys), need.resource) for one in statement.resources)
    if not statement.not_resources:
        return False
    return not any(fits_arn(fill_policy_variables(one, need.keys), need.resource) for one in statement.not_resources)


def _names_principal(named: Mapping[str, Sequence[str]], allows: bool, principal: AwsPrincipal, service: str) -> bool:
    if service:
        return service in named.get("Service", ())
    names = set(named.get("AWS", ()))
    account = {principal.account, f"arn:aws:iam::{principal.account}:root"}
    is_account = principal.arn in account
    return bool(names & {principal.arn, principal.identity_arn, "*"}) or (
        (is_account or not allows) and bool(names & account)
    )
