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

# What is given twice, its type and inputs, and what the review shows.
_SECOND = (
    ("policy of the bucket", "BucketPolicy", {"policy": _STRANGER}, "gains: the account 666666666666 may"),
    ("block of public access", "BucketPublicAccessBlock", {"blockPublicAcls": False}, "gains:"),
)

CHANGES = tuple(
    SilentChange(
        number=15,
        title=f"a second {what} {name}",
        stack=AWS,
        program=(f"pulumi.CustomResource('aws:s3/b{kind[1:]}:{kind}', {name!r}, { ({'bucket': _BUCKET, **inputs})!r})"),
        shows=(shown,),
        trips=frozenset({"access-gain"}),
    )
    for what, kind, inputs, shown in _SECOND
    for name in ("a-more", "z-more")
)
