# SPDX-License-Identifier: Apache-2.0
"""What a resource keeps less of, though it stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.platform.review import UNKNOWN, ReviewedResource
from trainyard.review.losses_in_place import find_loss_by_creation, find_loss_in_place

LOG, LOG_GROUP = "oci:Logging/log:Log", "aws:cloudwatch/logGroup:LogGroup"
BUCKET, VERSIONING = "oci:ObjectStorage/bucket:Bucket", "aws:s3/bucketVersioning:BucketVersioning"
LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
EXPIRY = "oci:ObjectStorage/objectLifecyclePolicy:ObjectLifecyclePolicy"


def resource(token: str, **inputs: Any) -> ReviewedResource:
    named = {"bucket": "data"} if token in (LIFECYCLE, EXPIRY) else {}
    return ReviewedResource(token, "kept", f"urn::{token}::kept", "", {**named, **inputs})


def expiry(amount: str, unit: str = "DAYS", **values: Any) -> dict[str, Any]:
    return {"name": amount, "action": "DELETE", "isEnabled": True, "timeAmount": amount, "timeUnit": unit, **values}


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
            "objects of the bucket data older than 1 day",
        ),
        (
            resource(LIFECYCLE, rules=[rule(90)]),
            resource(LIFECYCLE, rules=[rule(90), rule(5, "noncurrentDays", "noncurrentVersionExpiration")]),
            "old versions of objects of the bucket data older than 5 days are deleted, which were kept for ever",
        ),
        (
            resource(EXPIRY, rules=[expiry("2", "YEARS")]),
            resource(EXPIRY, rules=[expiry("2", "YEARS"), expiry("90", target="objects")]),
            "objects of the bucket data older than 90 days are deleted, which were kept for 730 days",
        ),
        (
            resource(EXPIRY, rules=[expiry("2", target="previous-object-versions")]),
            resource(EXPIRY, rules=[expiry("2", target="previous-object-versions"), expiry("30")]),
            "objects of the bucket data older than 30 days are deleted, which were kept for ever",
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


@pytest.mark.parametrize(
    ("token", "rules"),
    [
        (EXPIRY, expiry("1", action="ARCHIVE")),
        (EXPIRY, expiry("1", isEnabled=False)),
        (EXPIRY, expiry("1", action="ABORT", target="multipart-uploads")),
        (LIFECYCLE, {**rule(1), "status": "Disabled"}),
        (LIFECYCLE, {"status": "Enabled", "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7}}),
    ],
)
def test_rules_that_delete_no_object_lose_nothing(token: str, rules: dict[str, Any]) -> None:
    made = resource(token, rules=[rules])
    assert find_loss_by_creation(made, [made]) is None


def test_a_new_rule_deletes_from_a_bucket_that_is_there_and_from_no_new_one() -> None:
    made = resource(EXPIRY, rules=[expiry("1")])
    loss = find_loss_by_creation(made, [made])
    assert loss is not None
    assert loss.words == "objects of the bucket data older than 1 day are deleted, which were kept for ever"
    assert find_loss_by_creation(made, [made, resource(BUCKET, name="data")]) is None
    # Only what is made by the same change has a name that is not known yet.
    assert find_loss_by_creation(replace(made, inputs={**made.inputs, "bucket": UNKNOWN}), [made]) is None
    log = resource(LOG_GROUP, retentionInDays=1)
    assert find_loss_by_creation(log, [log]) is None
