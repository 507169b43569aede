# SPDX-License-Identifier: Apache-2.0
"""The canonical text of statements: one spelling for each, quoted where OCI's language requires it."""

import re

from components.oci.iam.statement import (
    AllOf,
    AnyOf,
    Comparison,
    CompartmentId,
    CompartmentName,
    Condition,
    Exists,
    Grant,
    Identified,
    Location,
    Named,
    PermissionGrant,
    Statement,
    Subject,
    Tenancy,
    Text,
    Value,
    Variable,
)

_BARE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
# Keywords that are quoted when they are used as a name.
_RESERVED = frozenset({"id", "to", "in", "where", "tenancy", "compartment", "any-user", "any-group"})


def _name_text(text: str) -> str:
    bare = _BARE.fullmatch(text) and text.lower() not in _RESERVED
    return text if bare else f"'{text}'"


def _member_text(member: Named | Identified) -> str:
    match member:
        case Identified(ocid):
            return f"id {ocid}"
        case Named(name, None):
            return _name_text(name)
        case Named(name, domain):
            return f"'{domain}'/'{name}'"


def subject_text(subject: Subject) -> str:
    """`group a, b`, `any-user` …"""
    return " ".join(filter(None, [subject.kind, ", ".join(map(_member_text, subject.members))]))


def grant_text(grant: Grant) -> str:
    """`read buckets` or `{BUCKET_READ}`."""
    if isinstance(grant, PermissionGrant):
        return "{" + ", ".join(grant.permissions) + "}"
    return f"{grant.verb} {grant.resource_type}"


def location_text(location: Location) -> str:
    """`tenancy`, `compartment A:B` or `compartment id ocid1…`."""
    match location:
        case Tenancy():
            return "tenancy"
        case CompartmentId(ocid):
            return f"compartment id {ocid}"
        case CompartmentName(path):
            return "compartment " + ":".join(map(_name_text, path))


def _value_text_of_condition(value: Value) -> str:
    match value:
        case Text(text):
            return f"'{text}'"
        case Variable(name):
            return name
        case _:
            return f"/{value.text}/"


def condition_text(condition: Condition) -> str:
    """The text after `where`, or a whole matching rule."""
    match condition:
        case Comparison():
            values = [_value_text_of_condition(value) for value in condition.values]
            match condition.operator:
                case "between":
                    right = " and ".join(values)
                case "in":
                    right = f"({', '.join(values)})"
                case _:
                    right = values[0]
            return f"{condition.variable} {condition.operator} {right}"
        case Exists(variable):
            return variable
        case AllOf(parts):
            return "all {" + ", ".join(map(condition_text, parts)) + "}"
        case AnyOf(parts):
            return "any {" + ", ".join(map(condition_text, parts)) + "}"


def to_text(statement: Statement) -> str:
    """The statement in OCI's language. Equal statements give equal texts."""
    who, what, where = subject_text(statement.subject), grant_text(statement.grant), location_text(statement.location)
    text = f"Allow {who} to {what} in {where}"
    return text if statement.condition is None else f"{text} where {condition_text(statement.condition)}"
