# SPDX-License-Identifier: Apache-2.0
"""Conditions of statements: rows of operators, and the keys that the local AWS knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from ipaddress import ip_address, ip_network

from localcloud.aws.judge.patterns import filled, fits, fits_arn

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
    quantity, _, rest = operator.rpartition(":")
    if_there = rest.endswith("IfExists")
    name = rest.removesuffix("IfExists")
    if name == "Null":
        return any((values is None) == (text.lower() == "true") for text in wanted)
    if name not in _OPERATORS or quantity not in ("", "ForAllValues", "ForAnyValue"):
        raise UnknownConditionError(f"the operator {operator}")
    compare, negative = _OPERATORS[name]
    if values is None:
        return if_there or negative or quantity == "ForAllValues"
    texts = [filled(text, keys) for text in wanted]
    fitting = [any(compare(text, value) for text in texts) != negative for value in values]
    return all(fitting) if quantity == "ForAllValues" or (negative and not quantity) else any(fitting)


def _number(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    return lambda wanted, value: compare(float(value), float(wanted))


def _date(compare: Callable[[datetime, datetime], bool]) -> Callable[[str, str], bool]:
    return lambda wanted, value: compare(datetime.fromisoformat(value), datetime.fromisoformat(wanted))


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
    "DateLessThan": (_date(lambda value, wanted: value < wanted), False),
    "DateGreaterThan": (_date(lambda value, wanted: value > wanted), False),
    "IpAddress": (_address, False),
    "NotIpAddress": (_address, True),
}
