# SPDX-License-Identifier: Apache-2.0
"""Conditions of statements: rows of operators, and the keys that the local AWS knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network

from components.aws_dl1.iam.patterns import filled, fits, fits_arn

Keys = Mapping[str, Sequence[str]]
# Keys that a request of ours may have. A condition on another key is one that nothing here can judge.
_KNOWN = re.compile(
    r"(aws:(ResourceTag|RequestTag|PrincipalTag)/.+"
    r"|aws:(CurrentTime|EpochTime|PrincipalAccount|PrincipalArn|PrincipalType|RequestedRegion|ResourceAccount"
    r"|SecureTransport|SourceIp|TagKeys|TokenIssueTime|userid|username|ViaAWSService|SourceAccount|SourceArn)"
    r"|ssm:resourceTag/.+|ec2:ResourceTag/.+|secretsmanager:ResourceTag/.+|iam:ResourceTag/.+|ecr:ResourceTag/.+"
    r"|ec2:(CreateAction|InstanceType|MetadataHttpTokens|Region|Vpc)"
    r"|iam:(PassedToService|PolicyARN)|s3:(prefix|delimiter|max-keys|x-amz-server-side-encryption|x-amz-acl)"
    r"|s3:RequestObjectTag/.+|s3:if-none-match|sts:RoleSessionName)",
    re.IGNORECASE,
)


class UnknownConditionError(Exception):
    """A condition that the local AWS cannot judge: its operator or its key."""


def hold(conditions: Sequence[tuple[str, str, tuple[str, ...]]], keys: Keys) -> bool:
    """Whether all conditions hold. UnknownConditionError if one of them cannot be judged."""
    return all(_holds(operator, key, wanted, keys) for operator, key, wanted in conditions)


def _holds(operator: str, key: str, wanted: tuple[str, ...], keys: Keys) -> bool:
    if not _KNOWN.fullmatch(key):
        raise UnknownConditionError(f"the condition key {key}")
    values = next((values for name, values in keys.items() if name.lower() == key.lower()), None)
    if not is_operator(operator):
        raise UnknownConditionError(f"the operator {operator}")
    quantity, name, if_there = _parts(operator)
    if name == "Null":
        return any((values is None) == (text.lower() == "true") for text in wanted)
    compare, negative = _OPERATORS[name]
    if values is None:
        # Without the key, no value of it can be any that fits.
        return if_there or quantity == "ForAllValues" or (negative and not quantity)
    texts = [filled(text, keys) for text in wanted]
    fitting = [any(compare(text, value) for text in texts) != negative for value in values]
    return all(fitting) if quantity == "ForAllValues" or (negative and not quantity) else any(fitting)


def is_operator(operator: str) -> bool:
    """Whether IAM has an operator of this name."""
    quantity, name, if_there = _parts(operator)
    if name == "Null":
        return quantity == "" and not if_there
    return name in _OPERATORS and quantity in ("", "ForAllValues", "ForAnyValue")


def _parts(operator: str) -> tuple[str, str, bool]:
    """Over how many values it goes, its name, and whether it also holds where there is no value."""
    quantity, _, rest = operator.rpartition(":")
    return quantity, rest.removesuffix("IfExists"), rest.endswith("IfExists")


def _number(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    return lambda wanted, value: compare(float(value), float(wanted))


def _date(compare: Callable[[datetime, datetime], bool]) -> Callable[[str, str], bool]:
    return lambda wanted, value: compare(_moment(value), _moment(wanted))


def _moment(text: str) -> datetime:
    """A date as IAM takes it: of ISO 8601, in UTC unless it says otherwise, or as seconds since 1970."""
    if text.isdecimal() and len(text) > len("2026"):
        return datetime.fromtimestamp(int(text), UTC)
    if text.isdecimal():
        text = f"{text}-01-01"
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _address(wanted: str, value: str) -> bool:
    return ip_address(value) in ip_network(wanted, strict=False)


def _same(wanted: str, value: str) -> bool:
    return wanted == value


def _same_in_any_case(wanted: str, value: str) -> bool:
    return wanted.lower() == value.lower()


# operator: (how a wanted text compares with a value, whether it is the negation)
_OPERATORS: Mapping[str, tuple[Callable[[str, str], bool], bool]] = {
    "StringEquals": (_same, False),
    "StringNotEquals": (_same, True),
    "StringEqualsIgnoreCase": (_same_in_any_case, False),
    "StringNotEqualsIgnoreCase": (_same_in_any_case, True),
    "StringLike": (fits, False),
    "StringNotLike": (fits, True),
    "ArnEquals": (fits_arn, False),
    "ArnLike": (fits_arn, False),
    "ArnNotEquals": (fits_arn, True),
    "ArnNotLike": (fits_arn, True),
    "Bool": (_same_in_any_case, False),
    "NumericEquals": (_number(lambda value, wanted: value == wanted), False),
    "NumericNotEquals": (_number(lambda value, wanted: value == wanted), True),
    "NumericLessThan": (_number(lambda value, wanted: value < wanted), False),
    "NumericLessThanEquals": (_number(lambda value, wanted: value <= wanted), False),
    "NumericGreaterThan": (_number(lambda value, wanted: value > wanted), False),
    "NumericGreaterThanEquals": (_number(lambda value, wanted: value >= wanted), False),
    "DateEquals": (_date(lambda value, wanted: value == wanted), False),
    "DateNotEquals": (_date(lambda value, wanted: value == wanted), True),
    "DateLessThan": (_date(lambda value, wanted: value < wanted), False),
    "DateLessThanEquals": (_date(lambda value, wanted: value <= wanted), False),
    "DateGreaterThan": (_date(lambda value, wanted: value > wanted), False),
    "DateGreaterThanEquals": (_date(lambda value, wanted: value >= wanted), False),
    "BinaryEquals": (_same, False),
    "IpAddress": (_address, False),
    "NotIpAddress": (_address, True),
}
