# SPDX-License-Identifier: Apache-2.0
"""Signatures of version 4, judged by those that AWS's own library makes of the same request."""

from __future__ import annotations

import datetime
import hashlib
from unittest import mock
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as AwsCredentials
from hypothesis import given
from hypothesis import strategies as st

from launcher.aws_dl1.bucket import encode_query_value
from launcher.aws_dl1.fetch import UNSIGNED, Credentials, signed

NOW = 1_793_000_000.0
KEY, SECRET = "AKIAEXAMPLE", "secret/+key"
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)


def by_botocore(service: str, method: str, url: str, headers: dict[str, str], body: bytes, token: str) -> str:
    request = AWSRequest(method, url, headers=dict(headers), data=body)
    if service == "s3":
        # As botocore treats uploads of files.
        request.context["has_streaming_input"] = True
    auth = (S3SigV4Auth if service == "s3" else SigV4Auth)(
        AwsCredentials(KEY, SECRET, token or None), service, "us-east-1"
    )
    moment = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    with mock.patch("botocore.auth.get_current_datetime", return_value=moment):
        auth.add_auth(request)
    return str(request.headers["Authorization"])


def ours(service: str, method: str, url: str, headers: dict[str, str], digest: str, token: str) -> str:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    made = signed(
        method, parts.netloc, target, headers, digest, service, "us-east-1", Credentials(KEY, SECRET, token), NOW
    )
    return made["authorization"]


@given(TEXTS.filter(bool), TEXTS, st.binary(max_size=50), st.sampled_from(["", "session/token=="]))
def test_an_object_of_any_name(name: str, value: str, body: bytes, token: str) -> None:
    url = f"https://bucket.s3.us-east-1.amazonaws.com/{quote(name)}"
    headers = {"content-type": "application/json", "content-length": str(len(body)), "if-none-match": "*"}
    digest = hashlib.sha256(body).hexdigest()
    assert ours("s3", "PUT", url, headers, digest, token) == by_botocore("s3", "PUT", url, headers, body, token)


@given(TEXTS, TEXTS)
def test_a_list_below_any_name(prefix: str, token: str) -> None:
    token, prefix = encode_query_value(token), encode_query_value(prefix)
    query = f"continuation-token={token}&encoding-type=url&list-type=2&prefix={prefix}"
    url = f"http://127.0.0.1:5000/bucket?{query}"
    digest = hashlib.sha256(b"").hexdigest()
    assert ours("s3", "GET", url, {}, digest, "") == by_botocore("s3", "GET", url, {}, b"", "")


def test_a_file_whose_content_is_held_by_its_md5() -> None:
    url, headers = "https://bucket.s3.us-east-1.amazonaws.com/x", {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
    assert ours("s3", "PUT", url, headers, UNSIGNED, "t") == by_botocore("s3", "PUT", url, headers, b"content", "t")


@pytest.mark.parametrize("service", ["secretsmanager", "logs", "ecr"])
def test_services_that_speak_json(service: str) -> None:
    body = b'{"SecretId": "x"}'
    url, digest = f"https://{service}.us-east-1.amazonaws.com/", hashlib.sha256(body).hexdigest()
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "secretsmanager.GetSecretValue"}
    theirs = by_botocore(service, "POST", url, {**headers, "X-Amz-Content-SHA256": digest}, body, "token")
    assert ours(service, "POST", url, headers, digest, "token") == theirs
