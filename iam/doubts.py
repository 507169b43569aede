# SPDX-License-Identifier: Apache-2.0
"""What is probably wrong in a statement that OCI would still accept."""

from collections.abc import Iterator

from iam.errors import nearest
from iam.evaluate import variables_in
from iam.permissions import families, is_documented, resource_types, type_of
from iam.statement import AllOf, AnyOf, Comparison, Condition, PermissionGrant, Statement, Text, VerbGrant

KNOWN_VARIABLES = (
    "request.user.id",
    "request.user.name",
    "request.user.mfaTotpVerified",
    "request.groups.id",
    "request.permission",
    "request.operation",
    "request.region",
    "request.ad",
    "request.networkSource.name",
    "request.principal.id",
    "request.principal.type",
    "request.principal.compartment.id",
    "request.utc-timestamp",
    "request.utc-timestamp.month-of-year",
    "request.utc-timestamp.day-of-month",
    "request.utc-timestamp.day-of-week",
    "request.utc-timestamp.time-of-day",
    "request.kms-key.id",
    "target.compartment.id",
    "target.compartment.name",
    "target.bucket.name",
    "target.object.name",
    "target.repo.name",
    "target.loggroup.id",
    "target.metrics.namespace",
    "target.dynamicgroup.id",
    "target.dynamicgroup.name",
    "target.policy.id",
    "target.policy.name",
    "target.user.id",
    "target.user.name",
    "target.group.id",
    "target.group.name",
    "target.key.id",
    "target.vault.id",
    "target.secret.id",
    "target.secret.name",
)
_TAGS = ("request.principal.group.tag.", "request.principal.compartment.tag.", "target.bucket.tag.")
_TARGET_TAGS = ("target.resource.tag.", "target.resource.compartment.tag.")


def _comparisons(condition: Condition | None) -> Iterator[Comparison]:
    match condition:
        case Comparison():
            yield condition
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _comparisons(part)


def _about_grant(statement: Statement) -> Iterator[str]:
    match statement.grant:
        case VerbGrant(_, name) if name not in families() and name not in resource_types():
            yield f"what `{name}` grants is not in the catalog: nothing here can judge it"
        case PermissionGrant(names):
            every = {name for kind in resource_types().values() for name in kind.covers["manage"]}
            for name in names:
                if type_of(name) is None:
                    yield f"`{name}` is not a permission in the catalog{nearest(name, every)}"
                elif not is_documented(name):
                    yield f"no document names the permission `{name}`: OCI may refuse it; grant a verb instead"


def _about_condition(condition: Condition) -> Iterator[str]:
    known = {name.lower() for name in KNOWN_VARIABLES}
    for name in sorted(variables_in(condition)):
        if name not in known and not name.startswith(_TAGS + _TARGET_TAGS):
            yield f"`{name}` is not a known variable, its condition may never hold{nearest(name, KNOWN_VARIABLES)}"
    for comparison in _comparisons(condition):
        for value in comparison.values:
            if isinstance(value, Text) and len(value.text) > 2 and value.text[0] == value.text[-1] == "/":
                yield f"'{value.text}' is compared letter by letter; a pattern has no quotes: {value.text}"


def doubts(statement: Statement) -> tuple[str, ...]:
    """Warnings about a statement, empty if there are none."""
    about_condition = _about_condition(statement.condition) if statement.condition else ()
    return (*_about_grant(statement), *about_condition)
