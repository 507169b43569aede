# SPDX-License-Identifier: Apache-2.0
"""A second policy for what has one, whichever name sorts first."""

from __future__ import annotations

import json

from tests.support.silence import AWS, SilentChange

_BUCKET = "vision-prod-gaudi"
_STRANGER = json.dumps({
    "Version": "2012-10-17",
    "Statement": [{
        "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::666666666666:root"}, "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{_BUCKET}/*",
    }],
})  # fmt: skip

CHANGES = (
    *(
        SilentChange(
            number=15,
            title=f"a second policy of the bucket {name}",
            stack=AWS,
            program=(
                f"pulumi.CustomResource('aws:s3/bucketPolicy:BucketPolicy', {name!r},"
                f" {{'bucket': {_BUCKET!r}, 'policy': {_STRANGER!r}}})"
            ),
            shows=("gains: the account 666666666666 may",),
            trips=frozenset({"access-gain"}),
        )
        for name in ("a-more", "z-more")
    ),
    *(
        SilentChange(
            number=15,
            title=f"a second block of public access {name}",
            stack=AWS,
            program=(
                f"pulumi.CustomResource('aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock', {name!r},"
                f" {{'bucket': {_BUCKET!r}, 'blockPublicAcls': False}})"
            ),
            shows=("gains:",),
            trips=frozenset({"access-gain"}),
        )
        for name in ("a-more", "z-more")
    ),
)
