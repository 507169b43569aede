# SPDX-License-Identifier: Apache-2.0
"""An invalid statement cannot be built, so every statement can be printed."""

from collections.abc import Callable

import pytest

from components.oci.iam import (
    AllOf,
    Comparison,
    CompartmentId,
    CompartmentName,
    Identified,
    Named,
    Pattern,
    PermissionGrant,
    StatementError,
    Subject,
    Text,
    Variable,
    VerbGrant,
    equals_text,
)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Named("it's"),
        lambda: Named(""),
        lambda: Named(" x"),
        lambda: Named("a\nb"),
        lambda: Named("a/b"),
        lambda: Identified("x"),
        lambda: Subject("group"),
        lambda: Subject("any-user", (Named("x"),)),
        lambda: Subject("service", (Named("x", "Default"),)),
        lambda: VerbGrant("reed", "buckets"),  # type: ignore[arg-type]
        lambda: VerbGrant("read", "Two words"),
        lambda: PermissionGrant(()),
        lambda: PermissionGrant(("bucket read",)),
        lambda: CompartmentName(()),
        lambda: CompartmentName(("a:b",)),
        lambda: CompartmentId("team"),
        lambda: Text("it's"),
        lambda: Pattern("a/ b"),
        lambda: Pattern(""),
        lambda: Pattern("a,b"),
        lambda: Variable("request"),
        lambda: equals_text("bucket", "x"),
        lambda: Comparison("target.bucket.name", "=", ()),
        lambda: Comparison("target.bucket.name", "between", (Text("a"),)),
        lambda: Comparison("target.bucket.name", "in", (Pattern("a*"),)),
        lambda: AllOf(()),
    ],
)
def test_an_invalid_statement_cannot_be_built(build: Callable[[], object]) -> None:
    with pytest.raises(StatementError):
        build()
