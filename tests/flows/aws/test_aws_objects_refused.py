# SPDX-License-Identifier: Apache-2.0
"""Requests that S3 refuses: broken content, ended uploads, malformed and public policies, and reads without
permission."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import botocore.session
import pytest
from botocore import UNSIGNED
from botocore.config import Config

from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients, refused

ACCOUNT = "123456789012"
PUBLIC = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::strict/*"}


@pytest.fixture(scope="module")
def bucket(aws: AwsClients) -> str:
    aws["s3"].create_bucket(Bucket="strict")
    aws["s3"].put_object(Bucket="strict", Key="a", Body=b"content")
    return "strict"


@pytest.fixture
def user(aws: AwsClients, shared_cloud: Cloud) -> Iterator[AwsClients]:
    """A user who may read objects but not list them."""
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::strict/*"}
    named = {"GroupName": "scientists", "PolicyName": "strict"}
    aws["iam"].put_group_policy(**named, PolicyDocument=policy(statement))
    yield AwsClients(shared_cloud, "user")
    aws["iam"].delete_group_policy(**named)


def policy(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def header(client: Any, operation: str, name: str, value: str) -> Callable[..., Any]:
    """A call with a header that botocore would have computed."""

    def call(**named: Any) -> Any:
        def put(params: Mapping[str, Any], **_: Any) -> None:
            params["headers"][name] = value

        event = f"before-call.s3.{operation}"
        client.meta.events.register(event, put)
        try:
            return getattr(client, {"PutObject": "put_object", "UploadPart": "upload_part"}[operation])(**named)
        finally:
            client.meta.events.unregister(event, put)

    call.__name__ = operation
    return call


def test_content_that_does_not_match_its_digest_is_refused(aws: AwsClients, bucket: str) -> None:
    s3 = aws["s3"]
    wrong = {"Bucket": bucket, "Key": "broken", "Body": b"content"}
    other = "1B2M2Y8AsgTpgAmY7PhCfg=="
    assert refused(header(s3, "PutObject", "Content-MD5", other), **wrong)[0] == "BadDigest"
    assert refused(header(s3, "PutObject", "Content-MD5", "no digest"), **wrong)[0] == "InvalidDigest"
    for name, value in {
        "ChecksumSHA256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "ChecksumCRC32": "AAAAAA==",
        "ChecksumSHA1": "2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "ChecksumCRC32C": "AAAAAA==",
    }.items():  # fmt: skip
        assert refused(s3.put_object, **wrong, **{name: value})[0] == "BadDigest", name
    assert refused(s3.head_object, Bucket=bucket, Key="broken")[0] == "404", "nothing of it was stored"
    s3.put_object(**wrong | {"Key": "whole"}, ChecksumAlgorithm="SHA256")
    header(s3, "PutObject", "Content-MD5", "mgNkuembtIDdJeHwKEyFVQ==")(**wrong | {"Key": "whole"})


def test_an_upload_that_has_ended_takes_no_more_parts(aws: AwsClients, bucket: str) -> None:
    s3 = aws["s3"]
    named = {"Bucket": bucket, "Key": "parts"}
    upload = s3.create_multipart_upload(**named)["UploadId"]
    wrong = header(s3, "UploadPart", "Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")
    assert refused(wrong, **named, UploadId=upload, PartNumber=1, Body=b"part")[0] == "BadDigest"
    elsewhere = {**named, "Key": "other"}
    assert refused(s3.upload_part, **elsewhere, UploadId=upload, PartNumber=1, Body=b"part")[0] == "NoSuchUpload"
    s3.abort_multipart_upload(**named, UploadId=upload)
    for call in (
        lambda: s3.upload_part(**named, UploadId=upload, PartNumber=1, Body=b"part"),
        lambda: s3.upload_part_copy(**named, UploadId=upload, PartNumber=1, CopySource=f"{bucket}/a"),
        lambda: s3.list_parts(**named, UploadId=upload),
    ):
        assert refused(call)[0] == "NoSuchUpload"


def test_a_missing_object_is_404_only_for_callers_who_may_list(aws: AwsClients, user: AwsClients, bucket: str) -> None:
    assert user["s3"].get_object(Bucket=bucket, Key="a")["Body"].read() == b"content"
    assert refused(user["s3"].get_object, Bucket=bucket, Key="none")[0] == "AccessDenied"
    assert refused(user["s3"].head_object, Bucket=bucket, Key="none")[0] == "403"
    assert refused(aws["s3"].get_object, Bucket=bucket, Key="none")[0] == "NoSuchKey"
    assert refused(aws["s3"].head_object, Bucket=bucket, Key="none")[0] == "404"


def test_an_anonymous_caller_has_no_access(shared_cloud: Cloud, bucket: str) -> None:
    session = botocore.session.Session()
    once = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    s3 = session.create_client("s3", region_name="us-east-1", endpoint_url=shared_cloud.endpoint, config=once)
    assert refused(s3.get_object, Bucket=bucket, Key="a") == ("AccessDenied", "Access Denied")
    assert refused(s3.list_objects_v2, Bucket=bucket)[0] == "AccessDenied"


def test_a_new_bucket_is_encrypted_and_not_public(aws: AwsClients) -> None:
    s3 = aws["s3"]
    s3.create_bucket(Bucket="closed")
    rules = s3.get_bucket_encryption(Bucket="closed")["ServerSideEncryptionConfiguration"]["Rules"]
    assert rules[0]["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert set(s3.get_public_access_block(Bucket="closed")["PublicAccessBlockConfiguration"].values()) == {True}
    owners = s3.get_bucket_ownership_controls(Bucket="closed")["OwnershipControls"]["Rules"]
    assert owners == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert s3.put_object(Bucket="closed", Key="a", Body=b"")["ServerSideEncryption"] == "AES256"
    public = {"Bucket": "closed", "ACL": "public-read"}
    assert refused(s3.put_bucket_acl, **public)[0] == "AccessControlListNotSupported"
    assert refused(s3.put_object, **public, Key="a", Body=b"")[0] == "AccessControlListNotSupported"
    s3.delete_bucket_encryption(Bucket="closed")
    assert s3.get_bucket_encryption(Bucket="closed")["ServerSideEncryptionConfiguration"]["Rules"] == rules


@pytest.mark.parametrize(
    "document",
    [
        "{", "[]", '{"x": 1}', policy(), policy({"Effect": "Allow"}), policy(PUBLIC | {"Effect": "Perhaps"}),
        policy(PUBLIC | {"Who": "me"}), policy({**PUBLIC, "NotPrincipal": "*"}),
        policy({key: value for key, value in PUBLIC.items() if key != "Principal"}),
        policy(PUBLIC | {"Resource": "arn:aws:s3:::another/*"}),
        policy(PUBLIC | {"Condition": {"StringIs": {"s3:prefix": "a"}}}),
        policy(PUBLIC | {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:role/nobody"}}),
    ],
)  # fmt: skip
def test_a_malformed_bucket_policy_is_refused(aws: AwsClients, bucket: str, document: str) -> None:
    assert refused(aws["s3"].put_bucket_policy, Bucket=bucket, Policy=document)[0] == "MalformedPolicy"


def test_a_public_bucket_policy_is_refused_by_the_public_access_block(aws: AwsClients, bucket: str) -> None:
    s3 = aws["s3"]
    code, message = refused(s3.put_bucket_policy, Bucket=bucket, Policy=policy(PUBLIC))
    assert (code, "BlockPublicPolicy" in message) == ("AccessDenied", True)
    limited = PUBLIC | {"Condition": {"StringEquals": {"aws:PrincipalAccount": ACCOUNT}}}
    s3.put_bucket_policy(Bucket=bucket, Policy=policy(limited))
    s3.delete_bucket_policy(Bucket=bucket)


def test_no_bucket_policy_locks_the_owner_out(aws: AwsClients, user: AwsClients, bucket: str) -> None:
    s3 = aws["s3"]
    everything = {"Action": "s3:*", "Resource": ["arn:aws:s3:::strict", "arn:aws:s3:::strict/*"]}
    for who in (
        {"Principal": "*"}, {"NotPrincipal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/user"}},
    ):  # fmt: skip
        s3.put_bucket_policy(Bucket=bucket, Policy=policy({"Effect": "Deny", **who, **everything}))
        try:
            assert refused(s3.list_objects_v2, Bucket=bucket)[0] == "AccessDenied"
            if "NotPrincipal" in who:
                assert user["s3"].get_object(Bucket=bucket, Key="a")["Body"].read() == b"content"
        finally:
            assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"]
            s3.delete_bucket_policy(Bucket=bucket)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"]


def test_a_disabled_key_neither_encrypts_nor_decrypts(aws: AwsClients, bucket: str) -> None:
    s3, kms = aws["s3"], aws["kms"]
    key = kms.create_key()["KeyMetadata"]["Arn"]
    sealed = {"Bucket": bucket, "Key": "sealed", "ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    s3.put_object(**sealed, Body=b"content")
    kms.disable_key(KeyId=key)
    assert refused(s3.put_object, **sealed, Body=b"content")[0] == "KMS.DisabledException"
    assert refused(s3.get_object, Bucket=bucket, Key="sealed")[0] == "KMS.DisabledException"
    kms.enable_key(KeyId=key)
    assert s3.get_object(Bucket=bucket, Key="sealed")["Body"].read() == b"content"
    kms.schedule_key_deletion(KeyId=key)
    assert refused(s3.get_object, Bucket=bucket, Key="sealed")[0] == "KMS.KMSInvalidStateException"
    none = sealed | {"SSEKMSKeyId": key[:-4] + "0000"}
    assert refused(s3.put_object, **none, Body=b"content")[0] == "KMS.NotFoundException"


def test_a_call_that_moto_would_mistake_for_another_is_refused(aws: AwsClients, bucket: str) -> None:
    """moto ignores settings that it does not have: it would delete or list the bucket when its metrics are meant."""
    s3 = aws["s3"]
    s3.create_bucket(Bucket="empty")
    for name in ("metrics", "analytics", "intelligent_tiering"):
        for verb in ("delete", "get"):
            call = getattr(s3, f"{verb}_bucket_{name}_configuration")
            assert refused(call, Bucket="empty", Id="x")[0] == "NotImplemented", name
    payer = {"RequestPaymentConfiguration": {"Payer": "Requester"}}
    assert refused(s3.put_bucket_request_payment, Bucket="empty", **payer)[0] == "NotImplemented"
    for call in (s3.get_object_retention, s3.get_object_torrent):
        assert refused(call, Bucket=bucket, Key="a")[0] == "NotImplemented"
    assert s3.get_bucket_request_payment(Bucket="empty")["Payer"] == "BucketOwner"
    s3.delete_bucket(Bucket="empty")
