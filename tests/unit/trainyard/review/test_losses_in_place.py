# SPDX-License-Identifier: Apache-2.0
"""What a resource keeps less of, though it stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.platform.review import ReviewedResource
from trainyard.review.losses_in_place import find_loss_in_place

LOG, LOG_GROUP = "oci:Logging/log:Log", "aws:cloudwatch/logGroup:LogGroup"
BUCKET, VERSIONING = "oci:ObjectStorage/bucket:Bucket", "aws:s3/bucketVersioning:BucketVersioning"
LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"


def resource(token: str, **inputs: Any) -> ReviewedResource:
    return ReviewedResource(token, "kept", f"urn::{token}::kept", "", inputs)


def rule(days: int, key: str = "days", of: str = "expiration") -> dict[str, Any]:
    return {"id": str(days), "status": "Enabled", of: {key: days}}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (resource(LOG, retentionDuration=60), resource(LOG, retentionDuration=30), "older than 30 days"),
        (
            resource(LOG_GROUP),
            resource(LOG_GROUP, retentionInDays=7),
            "older than 7 days are deleted, which were kept for ever",
        ),
        (resource(LOG_GROUP, retentionInDays=0), resource(LOG_GROUP, retentionInDays=1), "older than 1 day are"),
        (resource(BUCKET, versioning="Enabled"), resource(BUCKET, versioning="Suspended"), "no older versions"),
        (
            resource(VERSIONING, versioningConfiguration={"status": "Enabled"}),
            resource(VERSIONING, versioningConfiguration={"status": "Suspended"}),
            "no older versions",
        ),
        (
            resource(LIFECYCLE, rules=[rule(90)]),
            resource(LIFECYCLE, rules=[rule(90), rule(1)]),
            "objects older than 1 day",
        ),
        (
            resource(LIFECYCLE, rules=[rule(90)]),
            resource(LIFECYCLE, rules=[rule(90), rule(5, "noncurrentDays", "noncurrentVersionExpiration")]),
            "old versions of objects older than 5 days are deleted, which were kept for ever",
        ),
        (replace(resource(BUCKET), protect=True), resource(BUCKET), "nothing protects it any more"),
        (
            replace(resource("any:thing:Thing"), retain=True),
            resource("any:thing:Thing"),
            "does not stay after a destroy",
        ),
    ],
)
def test_less_is_a_loss_and_more_is_none(before: ReviewedResource, after: ReviewedResource, words: str) -> None:
    loss = find_loss_in_place(before, after)
    assert loss is not None
    assert words in loss.words
    assert find_loss_in_place(after, before) is None
    assert find_loss_in_place(before, before) is None


def test_leaving_out_what_the_cloud_fills_in_loses_nothing() -> None:
    assert find_loss_in_place(resource(LOG, retentionDuration=60), resource(LOG)) is None
    assert find_loss_in_place(resource(BUCKET, versioning="Enabled"), resource(BUCKET)) is None
