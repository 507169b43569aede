# SPDX-License-Identifier: Apache-2.0
"""Authentication of the local AWS: signatures, dates, tokens, and requests that are not AWS's."""

import http.client
import stat
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients, refused

# AWS's error for a wrong key, by the protocol of the service.
CODES = [
    ("ec2", "describe_vpcs", "AuthFailure", "AuthFailure"),
    ("iam", "list_users", "InvalidClientTokenId", "SignatureDoesNotMatch"),
    ("s3", "list_buckets", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    ("ssm", "describe_parameters", "UnrecognizedClientException", "InvalidSignatureException"),
]


def _keys(aws: AwsClients) -> Credentials:
    credentials: Credentials = aws["sts"]._request_signer._credentials
    return credentials


def test_the_profile_decides_the_caller(aws: AwsClients, shared_cloud: Cloud) -> None:
    deployer, user = aws["sts"].get_caller_identity(), AwsClients(shared_cloud, "user")["sts"].get_caller_identity()
    assert deployer["Arn"] == "arn:aws:iam::123456789012:user/deployer"
    assert user["Arn"] == "arn:aws:iam::123456789012:user/user"


def test_only_the_owner_can_read_the_clouds_credentials(shared_cloud: Cloud) -> None:
    variables = shared_cloud.env
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        path = Path(variables[name])
        assert path.is_relative_to(shared_cloud.home)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((shared_cloud.home / "aws").stat().st_mode) == 0o700


@pytest.mark.parametrize(("service", "operation", "unknown", "wrong"), CODES, ids=[row[0] for row in CODES])
def test_a_wrong_key_is_refused_with_the_services_own_code(
    aws: AwsClients, service: str, operation: str, unknown: str, wrong: str
) -> None:
    nobody = aws.with_keys("AKIAIOSFODNN7EXAMPLE", "wrong")
    forger = aws.with_keys(_keys(aws).access_key, "wrong")
    assert refused(getattr(nobody[service], operation))[0] == unknown
    assert refused(getattr(forger[service], operation))[0] == wrong


def test_names_that_need_escapes_are_signed_as_they_are_sent(aws: AwsClients) -> None:
    s3 = aws["s3"]
    s3.create_bucket(Bucket="escapes")
    names = ["a b", "a/b//c", "ü", "+", "%2F", "~(x)'*!", "a&b=c;d", ".../..", "#?"]
    for name in names:
        s3.put_object(Bucket="escapes", Key=name, Body=name.encode(), Metadata={"name": "x  y"})
    kept = [row["Key"] for row in s3.list_objects_v2(Bucket="escapes", Prefix="")["Contents"]]
    assert sorted(kept) == sorted(names)
    for name in names:
        assert s3.get_object(Bucket="escapes", Key=name)["Body"].read() == name.encode()


def test_a_presigned_url_is_valid_for_its_own_request_only(aws: AwsClients, shared_cloud: Cloud) -> None:
    with_v4 = aws["s3"]
    with_v4.create_bucket(Bucket="presigned")
    with_v4.put_object(Bucket="presigned", Key="a", Body=b"content")
    url = _presign(aws, shared_cloud, "a")
    with urlopen(url) as answer:
        assert answer.read() == b"content"
    for changed in (url.replace("/a?", "/b?"), url.replace("X-Amz-Expires=60", "X-Amz-Expires=61")):
        assert _status(shared_cloud, "GET", _target(changed), {}, b"")[0] == 403


def _presign(aws: AwsClients, cloud: Cloud, key: str) -> str:
    import botocore.session

    session = botocore.session.Session()
    credentials = _keys(aws)
    session.set_credentials(credentials.access_key, credentials.secret_key)
    client = session.create_client(
        "s3", region_name="us-east-1", endpoint_url=cloud.endpoint, config=Config(signature_version="s3v4")
    )
    return str(client.generate_presigned_url("get_object", {"Bucket": "presigned", "Key": key}, 60))


def _target(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def _status(cloud: Cloud, method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(cloud.endpoint).netloc, timeout=60)
    try:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _signed(aws: AwsClients, cloud: Cloud, body: bytes) -> dict[str, str]:
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "AmazonSSM.DescribeParameters"}
    request = AWSRequest("POST", f"{cloud.endpoint}/", headers, body)
    SigV4Auth(_keys(aws), "ssm", "us-east-1").add_auth(request)
    return {**dict(request.headers), "host": urlsplit(cloud.endpoint).netloc}


def test_a_request_changed_after_signing_is_refused(aws: AwsClients, shared_cloud: Cloud) -> None:
    headers = _signed(aws, shared_cloud, b"{}")
    assert _status(shared_cloud, "POST", "/", headers, b"{}")[0] == 200
    attempts = {
        "another body": ("POST", "/", headers, b'{"MaxResults":1}'),
        "another path": ("POST", "/x", headers, b"{}"),
        "a query": ("POST", "/?a=b", headers, b"{}"),
        "another operation": ("POST", "/", {**headers, "x-amz-target": "AmazonSSM.ListCommands"}, b"{}"),
        "a header that was not signed": ("POST", "/", {**headers, "x-amz-meta-x": "1"}, b"{}"),
        "another date": ("POST", "/", {**headers, "X-Amz-Date": "20200101T000000Z"}, b"{}"),
    }
    for what, (method, target, changed, body) in attempts.items():
        status, answer = _status(shared_cloud, method, target, changed, body)
        assert status == 400, (what, answer)
        assert b"__type" in answer, what


def test_a_request_with_a_wrong_time_is_refused(
    aws: AwsClients, shared_cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import UTC, datetime, timedelta

    import botocore.auth

    for minutes in (-16, 16):
        moment = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=minutes)
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda moment=moment, **more: moment)
        headers = _signed(aws, shared_cloud, b"{}")
        status, answer = _status(shared_cloud, "POST", "/", headers, b"{}")
        assert (status, b"Signature expired" in answer) == (400, True)


def test_an_unsigned_request_gets_aws_error(shared_cloud: Cloud) -> None:
    target = {"x-amz-target": "AmazonSSM.DescribeParameters", "content-type": "application/x-amz-json-1.1"}
    status, answer = _status(shared_cloud, "POST", "/", target, b"{}")
    assert (status, b"Missing Authentication Token" in answer) == (400, True)


def test_a_missing_service_is_named(aws: AwsClients) -> None:
    assert "'dynamodb'" in str(refused(aws["dynamodb"].list_tables))


def test_broken_requests_get_short_answers_and_no_traceback(aws: AwsClients, shared_cloud: Cloud) -> None:
    for authorization in (
        "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a/b", "AWS4-HMAC-SHA256 " + "Credential=" * 5000,
        "AWS4-HMAC-SHA256 Credential=a/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=\xff",
        "AWS AKIA:signature", "AWS4-ECDSA-P256-SHA256 Credential=a/b/c/d/aws4_request",
    ):  # fmt: skip
        for path in ("/", "/../../etc/passwd", "/%00", "/%ff", "//", "/a?" + "b=c&" * 1000):
            status, answer = _status(shared_cloud, "GET", path, {"authorization": authorization}, b"")
            assert 400 <= status < 500, (authorization, path)
            assert answer.startswith(b"<?xml"), answer
    log = (shared_cloud.home / "server.log").read_text()
    assert "Traceback" not in log


def _call(aws: AwsClients, service: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    """Sends a request that no client would make, signed as the deployer."""
    request = AWSRequest("POST", f"{aws.cloud.endpoint}{target}", headers, body)
    SigV4Auth(_keys(aws), service, "us-east-1").add_auth(request)
    signed = {**dict(request.headers), "host": urlsplit(aws.cloud.endpoint).netloc}
    return _status(aws.cloud, "POST", target, signed, body)


def test_the_call_that_was_checked_is_carried_out(aws: AwsClients) -> None:
    ssm = aws["ssm"]
    for name in ("kept", "other"):
        ssm.put_parameter(Name=name, Value=name, Type="String")
    form, json_type = (
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/x-amz-json-1.1"},
    )
    get = {**json_type, "x-amz-target": "AmazonSSM.GetParameter"}
    body = b'{"Name": "other", "x": "&Action=DeleteParameter&Name=kept&"}'
    status, answer = _call(aws, "ssm", "/", get, body)
    assert (status, b'"other"' in answer) == (200, True)
    vpcs = b"Action=DescribeVpcs&Version=2016-11-15"
    for service, target, headers, sent in (
        ("ssm", "/?Action=DeleteParameter", get, b'{"Name": "kept"}'),
        ("ec2", "/?Action=CreateVpc&CidrBlock=10.0.0.0%2F16", {"content-type": "text/plain"}, vpcs),
        ("ec2", "/", form, vpcs + b"&Action=CreateVpc"),
        ("ec2", "/path", form, vpcs),
        ("ec2", "/", {**form, "content-encoding": "gzip"}, vpcs),
        ("s3", "/escapes?acl&delete", {}, b""),
        ("s3", "/escapes%2Fa/b", {}, b""),
        ("s3", "/escapes/a?select", {}, b""),
    ):  # fmt: skip
        status, answer = _call(aws, service, target, headers, sent)
        assert status in (400, 403, 501), (target, answer)
    assert ssm.get_parameter(Name="kept")["Parameter"]["Value"] == "kept"
    assert [row["IsDefault"] for row in aws["ec2"].describe_vpcs()["Vpcs"]] == [True]


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(aws: AwsClients, shared_cloud: Cloud) -> None:
    headers = {**_signed(aws, shared_cloud, b"{}"), "content-length": str(17 * 1024 * 1024)}
    connection = http.client.HTTPConnection(urlsplit(shared_cloud.endpoint).netloc, timeout=60)
    try:
        connection.putrequest("POST", "/", skip_host=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, b"RequestEntityTooLarge" in answer.read()) == (413, True)
    finally:
        connection.close()
