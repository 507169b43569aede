# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given

from iam import Statement
from iam.doubts import doubts
from iam.parse import parse
from tests.unit.iam.strategies import statements


@pytest.mark.parametrize(
    ("statement", "doubt"),
    [
        ("Allow group x to read buckets in tenancy where target.bucket.name = 'x'", None),
        ("Allow group x to read buckets in tenancy where target.resource.tag.ops.team = 'x'", None),
        ("Allow group x to {BUCKET_READ} in tenancy", None),
        ("Allow group x to {BUCKET_RAED} in tenancy", "did you mean `BUCKET_READ`"),
        ("Allow group x to {DATA_SCIENCE_JOB_CREATE} in tenancy", "OCI may refuse it; grant a verb instead"),
        ("Allow group x to read instances in tenancy", "nothing here can judge it"),
        ("Allow group x to read buckets in tenancy where target.buckt.name = 'x'", "did you mean `target.bucket.name`"),
        (
            "Allow group x to read buckets in tenancy where any {target.bucket.name = '/x*/'}",
            "a pattern has no quotes: /x*/",
        ),
    ],
)
def test_doubts(statement: str, doubt: str | None) -> None:
    found = doubts(parse(statement))
    assert len(found) == (0 if doubt is None else 1)
    assert doubt is None or doubt in found[0]


@given(statements)
def test_any_statement_can_be_doubted(statement: Statement) -> None:
    assert all(doubts(statement))
