# SPDX-License-Identifier: Apache-2.0
"""What S3's refusals mean to a connection."""

from __future__ import annotations

import pytest

from launcher.aws_dl1.bucket import Signer
from launcher.aws_dl1.fetch import Identity
from launcher.object_store import BAD_DIGEST, STALE, Refusal


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "BadDigest", BAD_DIGEST),
        (400, "ExpiredToken", STALE),
        (403, "RequestTimeTooSkewed", STALE),
        (403, "AccessDenied", ""),
        (409, "ConditionalRequestConflict", ""),
        (412, "PreconditionFailed", ""),
        (503, "SlowDown", ""),
    ],
)
def test_a_refusal_is_read_by_its_name(status: int, code: str, kind: str) -> None:
    signer = Signer(Identity({"AWS_REGION": "us-east-1"}))
    content = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>why</Message></Error>".encode()
    assert signer.refusal(status, content) == Refusal(f"{code}: why", kind)


@pytest.mark.parametrize("content", [b"", b"<html>", b"<Error/>", b"{}"])
def test_an_error_of_a_proxy_is_not_read_as_one_of_s3(content: bytes) -> None:
    assert Signer(Identity({"AWS_REGION": "us-east-1"})).refusal(502, content) is None
