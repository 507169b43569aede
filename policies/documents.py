# SPDX-License-Identifier: Apache-2.0
"""Reads the policies of clouds for rules: AWS's documents (JSON text or values), and conditions of OCI's statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from components.oci.iam.statement import AllOf, AnyOf, Comparison, Condition, Pattern, Text
from components.values.resource_types import ResourceType, TypesWith
from policies.aws_grants import names_nothing

ANY = "*"
# By type, the property with a document that says what its owner may do.
IDENTITY_POLICIES = TypesWith(lambda row: row.document)
# By type, the property with a document that says who may use a resource, and what resource that is.
RESOURCE_POLICIES = TypesWith(lambda row: row.own_policy)


# Roles may have such documents inside.
IDENTITY_TYPES = TypesWith(lambda row: row.document or row.part == "role")


class DocumentError(ValueError):
    """A document is invalid. The message says why."""


def statements_in_document(document: Any) -> Sequence[Mapping[str, Any]]:
    """The statements of a document; none where there is no document. Raises DocumentError."""
    if not document:
        return ()
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError as problem:
            raise DocumentError(f"it is not JSON: {problem}") from None
    if not isinstance(document, Mapping) or not document.get("Statement"):
        raise DocumentError("it has no `Statement`")
    statements = as_list(document["Statement"])
    if not all(isinstance(statement, Mapping) for statement in statements):
        raise DocumentError("a statement is not an object")
    return statements


def readable_statements(document: Any) -> Sequence[Mapping[str, Any]]:
    """The statements of a document; none if it is invalid, which the rule statements-parse reports."""
    try:
        return statements_in_document(document)
    except DocumentError:
        return ()


def identity_statements(properties: Mapping[str, Any], token: str) -> Sequence[Mapping[str, Any]]:
    """The readable statements on what the holders of a policy, or a role, may do."""
    if token in IDENTITY_POLICIES:
        return readable_statements(properties.get(IDENTITY_POLICIES[token]))
    inside = [policy.get("policy") for policy in properties.get("inlinePolicies") or ()]
    return [statement for document in inside for statement in readable_statements(document)]


def as_list(value: Any) -> Sequence[Any]:
    """A value as a list: IAM takes a single value in place of a list."""
    if value is None:
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def has_policy_of(row: ResourceType, *resources: str) -> bool:
    """Whether resources of the type have a policy that says who may use such a resource."""
    return row.own_policy is not None and row.own_policy.what in resources


def allowed_values(condition: Condition | None, *variables: str) -> frozenset[str] | None:
    """The only values of a variable that the condition of an OCI statement or matching rule allows. None: any value.

    `variables`: the names of the variable, if it has several.
    """
    if isinstance(condition, AllOf):
        limits = [values for part in condition.parts if (values := allowed_values(part, *variables)) is not None]
        return frozenset.intersection(*limits) if limits else None
    if isinstance(condition, AnyOf):
        each = [allowed_values(part, *variables) for part in condition.parts]
        known = [values for values in each if values is not None]
        return frozenset[str]().union(*known) if len(known) == len(each) else None
    if not isinstance(condition, Comparison) or condition.variable.lower() not in variables:
        return None
    if condition.operator not in ("=", "in"):
        return None
    values = frozenset(
        value.text
        for value in condition.values
        if isinstance(value, Text) or (isinstance(value, Pattern) and not names_nothing(value.text))
    )
    return values if len(values) == len(condition.values) else None
