# SPDX-License-Identifier: Apache-2.0
"""OCI policy statements: parses, prints and judges them, and finds the smallest grant. Pure.

This module exports what is needed to write statements. To keep imports fast, reading and judging are imported from
their own modules: `parse`, `matching`, `judge`, `explain`.
"""

from components.oci.iam.permissions import (
    Operation,
    by_resource_type,
    find_operation,
    permissions_of_grant,
    smallest_grant_for,
    type_of,
)
from components.oci.iam.printing import condition_text, to_text
from components.oci.iam.statement import (
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
    StatementError,
    Subject,
    Tenancy,
    Text,
    Trust,
    Variable,
    VerbGrant,
    dynamic_group_subject,
    equals_text,
    group_subject,
    service_subject,
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
    "dynamic_group_subject",
    "equals_text",
    "find_operation",
    "group_subject",
    "permissions_of_grant",
    "service_subject",
    "smallest_grant_for",
    "to_text",
    "type_of",
]
