# SPDX-License-Identifier: Apache-2.0
"""What a condition of OCI's policy language, or a matching rule, holds a variable to."""

from __future__ import annotations

from components.oci.iam.statement import AllOf, AnyOf, Comparison, Condition, Pattern, Text


def held_to(condition: Condition | None, *variables: str) -> frozenset[str] | None:
    """The only values of a variable with which the condition can hold. None: it holds with any.

    Several variables are names of one thing.
    """
    if isinstance(condition, AllOf):
        found = [values for part in condition.parts if (values := held_to(part, *variables)) is not None]
        return frozenset.intersection(*found) if found else None
    if isinstance(condition, AnyOf):
        each = [held_to(part, *variables) for part in condition.parts]
        known = [values for values in each if values is not None]
        return frozenset[str]().union(*known) if len(known) == len(each) else None
    if not isinstance(condition, Comparison) or condition.variable.lower() not in variables:
        return None
    if condition.operator not in ("=", "in"):
        return None
    values = frozenset(one.text for one in condition.values if isinstance(one, Text | Pattern))
    # A pattern of stars alone is every name.
    return values if len(values) == len(condition.values) and all(value.strip("*") for value in values) else None
