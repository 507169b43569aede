# SPDX-License-Identifier: Apache-2.0
"""OCI policy statements: parse, print, judge, and find the least that is needed. Pure, and standing alone.

This level has what it takes to write statements. Reading and judging them is imported from where it is, so that nobody
pays for what they don't use: `iam.parse`, `iam.matching`, `iam.judge`, `iam.explain`.
"""

from iam.errors import StatementError
from iam.minimal import smallest
from iam.permissions import Operation, by_resource_type, grants, operation, type_of
from iam.printing import condition_text, to_text
from iam.statement import (
    AllOf,
    AnyOf,
    Comparison,
    CompartmentId,
    CompartmentName,
    Condition,
    Grant,
    Identified,
    Location,
    Named,
    Pattern,
    PermissionGrant,
    Statement,
    Subject,
    Tenancy,
    Text,
    Trust,
    Variable,
    VerbGrant,
    dynamic_group,
    equals,
    group,
    service,
)

__all__ = [
    "AllOf",
    "AnyOf",
    "Comparison",
    "CompartmentId",
    "CompartmentName",
    "Condition",
    "Grant",
    "Identified",
    "Location",
    "Named",
    "Operation",
    "Pattern",
    "PermissionGrant",
    "Statement",
    "StatementError",
    "Subject",
    "Tenancy",
    "Text",
    "Trust",
    "Variable",
    "VerbGrant",
    "by_resource_type",
    "condition_text",
    "dynamic_group",
    "equals",
    "grants",
    "group",
    "operation",
    "service",
    "smallest",
    "to_text",
    "type_of",
]
