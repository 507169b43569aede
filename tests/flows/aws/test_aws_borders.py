# SPDX-License-Identifier: Apache-2.0
"""Each request is parsed only once.

An ambiguous request is refused, or has exactly the meaning that access control checked. Every attack here once
succeeded without a policy that allows it. The tests compare moto's state, not responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from localcloud.server.http import Reply
from tests.support.aws_inside import AwsInside, Sender, aws_inside, linked, signed, through_link

ACCOUNT = "123456789012"
FORM = {"content-type": "application/x-www-form-urlencoded"}
MULTIPART = "multipart/form-data; boundary=B"
# Content types that werkzeug parses as a form in any spelling.
TYPES = (MULTIPART, "Multipart/Form-Data; boundary=B", " multipart/form-data ;boundary=B", "application/x-url-encoded")
CODE = ".trainyard/code/x.tar.gz"


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsInside]:
    with aws_inside(tmp_path_factory.mktemp("aws")) as made:
        yield made


@pytest.fixture(scope="module")
def groups(inside: AwsInside) -> Mapping[str, str]:
    """Security groups of two stacks."""
    ec2 = inside.client(inside.deployer, "ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    return {
        stack: ec2.create_security_group(GroupName=stack, Description=stack, VpcId=vpc, TagSpecifications=[
            {"ResourceType": "security-group", "Tags": [{"Key": "stack", "Value": stack}]}
        ])["GroupId"]
        for stack in ("mine", "theirs")
    }  # fmt: skip


@pytest.fixture
def bucket(inside: AwsInside) -> str:
    s3 = inside.client(inside.deployer, "s3")
    s3.create_bucket(Bucket="team")
    for key in ("mine/a", "secret/q.json", CODE, "shared/x"):
        s3.put_object(Bucket="team", Key=key, Body=b"content of " + key.encode())
    return "team"


def grant(inside: AwsInside, *statements: Mapping[str, Any]) -> None:
    """Gives the user these permissions only."""
    rows = [{"Effect": "Allow", "Resource": "*", **one} for one in statements]
    inside.ask(inside.deployer, "iam", "PutGroupPolicy", GroupName="scientists", PolicyName="test",
               PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": rows}))  # fmt: skip


def two_forms(outer: str, **inner: str) -> bytes:
    """A body that one parser takes for a query, and another for a form."""
    parts = "".join(
        f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in inner.items()
    )
    return f"{outer}&z=\r\n{parts}--B--".encode()


def keys_of(inside: AwsInside, bucket: str = "team") -> dict[str, bytes]:
    from moto.s3.models import s3_backends

    held = s3_backends[ACCOUNT]["aws"].buckets[bucket].keys
    return {name: held[name].value for name in held}


def access_keys(user: str) -> set[str]:
    from moto.iam.models import iam_backends

    return {key.access_key_id for key in iam_backends[ACCOUNT]["aws"].users[user].access_keys}


@pytest.mark.parametrize("kind", TYPES)
def test_a_user_who_may_create_an_own_access_key_cannot_create_another_users(inside: AwsInside, kind: str) -> None:
    grant(inside, {"Action": "iam:CreateAccessKey", "Resource": f"arn:aws:iam::{ACCOUNT}:user/user"})
    before = access_keys("deployer"), access_keys("user")
    body = two_forms("Action=CreateAccessKey&Version=2010-05-08&UserName=user", UserName="deployer")
    reply = inside.send(inside.user, "iam", "POST", "/", {"content-type": kind}, body)
    assert (access_keys("deployer"), access_keys("user")) == before
    assert 400 <= reply.status < 500


def test_a_user_who_may_assume_one_role_cannot_assume_another(inside: AwsInside) -> None:
    iam = inside.client(inside.deployer, "iam")
    for name, who in (
        ("small", f"arn:aws:iam::{ACCOUNT}:user/user"),
        ("boss", f"arn:aws:iam::{ACCOUNT}:user/deployer"),
    ):
        trust = {"Effect": "Allow", "Principal": {"AWS": who}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)
    small, boss = (f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("small", "boss"))
    grant(inside, {"Action": "sts:AssumeRole", "Resource": small})
    body = two_forms(
        f"Action=AssumeRole&Version=2011-06-15&RoleSessionName=me&RoleArn={small}", RoleArn=boss, RoleSessionName="me"
    )
    reply = inside.send(inside.user, "sts", "POST", "/", {"content-type": MULTIPART}, body)
    assert b"assumed-role/boss" not in reply.content


@pytest.mark.parametrize("kind", TYPES[:2])
def test_a_condition_on_tags_uses_the_tags_of_the_deleted_resource(
    inside: AwsInside, groups: Mapping[str, str], kind: str
) -> None:
    from moto.ec2.models import ec2_backends

    owned = {"StringEquals": {"aws:ResourceTag/stack": "mine"}}
    grant(inside, {"Action": "ec2:DeleteSecurityGroup", "Condition": owned})
    outer = f"Action=DeleteSecurityGroup&Version=2016-11-15&GroupId={groups['mine']}"
    body = two_forms(outer, GroupId=groups["theirs"])
    inside.send(inside.user, "ec2", "POST", "/", {"content-type": kind}, body)
    assert ec2_backends[ACCOUNT]["us-east-1"].get_security_group_from_id(groups["theirs"]) is not None


@pytest.mark.parametrize(
    "spelled",
    [
        # moto ignores tags after a gap in the numbers, and tags of calls in which it expects none.
        "TagSpecification.2.ResourceType=vpc&TagSpecification.2.Tag.1.Key=stack&TagSpecification.2.Tag.1.Value=mine",
        "TagSpecification.1.ResourceType=vpc&TagSpecification.1.Tag.2.Key=stack&TagSpecification.1.Tag.2.Value=mine",
        "TagSpecification.1.ResourceType=vpc&TagSpecification.1.X.1.Key=stack&TagSpecification.1.X.1.Value=mine",
        "TagSpecification.\u0661.ResourceType=vpc&TagSpecification.\u0661.Tag.1.Key=stack"
        "&TagSpecification.\u0661.Tag.1.Value=mine",
    ],
)
def test_a_tag_that_moto_would_ignore_satisfies_no_condition(inside: AwsInside, spelled: str) -> None:
    from moto.ec2.models import ec2_backends

    wanted = {"StringEquals": {"aws:RequestTag/stack": "mine"}}
    grant(inside, {"Action": "ec2:CreateVpc", "Condition": wanted}, {"Action": "ec2:CreateTags"})
    before = set(ec2_backends[ACCOUNT]["us-east-1"].vpcs)
    body = f"Action=CreateVpc&Version=2016-11-15&CidrBlock=10.1.0.0/16&{spelled}".encode()
    inside.send(inside.user, "ec2", "POST", "/", FORM, body)
    assert set(ec2_backends[ACCOUNT]["us-east-1"].vpcs) == before


def test_access_control_and_moto_use_the_same_region(inside: AwsInside) -> None:
    from moto.ec2.models import ec2_backends

    elsewhere = {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}}
    grant(inside, {"Action": "ec2:*"}, {"Effect": "Deny", "Action": "ec2:*", "Condition": elsewhere})
    before = set(ec2_backends[ACCOUNT]["eu-west-1"].vpcs)
    body = b"Action=CreateVpc&Version=2016-11-15&CidrBlock=10.1.0.0/16"
    for region in ("eu-west-1,x", "eu-west-1", "eu-west-1;", "EU-WEST-1", "eu-west-1\u00a0"):
        from urllib.parse import quote

        inside.send(inside.user, "ec2", "POST", "/", FORM, body, region)
        scope = f"{inside.user.key}/20260101/{quote(region)}/ec2/aws4_request"
        inside.send(inside.user, "ec2", "POST", f"/?X-Amz-Credential={scope}", FORM, body, region)
    assert set(ec2_backends[ACCOUNT]["eu-west-1"].vpcs) == before


DELETES = {
    "a second key in a namespace": "<Delete><Object><Key>secret/q.json</Key><b:Key xmlns:b='u'>mine/a</b:Key></Object>"
                                   "</Delete>",
    "a first key in a namespace": "<Delete><Object><b:Key xmlns:b='u'>mine/a</b:Key><Key>secret/q.json</Key></Object>"
                                  "</Delete>",
    "two keys": "<Delete><Object><Key>secret/q.json</Key><Key>mine/a</Key></Object></Delete>",
    "an object in a namespace": "<Delete><Object><Key>mine/b</Key></Object><b:Object xmlns:b='u'><Key>mine/a</Key>"
                                "</b:Object><Object xmlns='v'><Key>secret/q.json</Key></Object></Delete>",
    "a key with parts": "<Delete><Object><Key>mine/a<x>secret/q.json</x></Key></Object></Delete>",
    "an attribute": "<Delete><Object><Key a='secret/q.json'>mine/a</Key></Object></Delete>",
    "a declared name": "<!DOCTYPE x [<!ENTITY k 'secret/q.json'>]><Delete><Object><Key>&k;</Key></Object></Delete>",
    "a comment": "<Delete><Object><Key>mine/a<!-- x --></Key><Key>secret/q.json</Key></Object></Delete>",
    "another case": "<delete><Object><Key>secret/q.json</Key></Object></delete>",
    "a version beside a key": "<Delete><Object><Key>secret/q.json</Key><VersionId/></Object></Delete>",
}  # fmt: skip


@pytest.mark.parametrize("body", DELETES.values(), ids=DELETES)
def test_a_list_of_deletions_has_one_meaning(inside: AwsInside, bucket: str, body: str) -> None:
    grant(
        inside, {"Action": ["s3:DeleteObject", "s3:DeleteObjectVersion"], "Resource": f"arn:aws:s3:::{bucket}/mine/*"}
    )
    reply = inside.send(inside.user, "s3", "POST", f"/{bucket}?delete", {}, body.encode())
    assert "secret/q.json" in keys_of(inside)
    assert 400 <= reply.status < 500


@pytest.mark.parametrize("kind", TYPES)
def test_a_list_of_deletions_is_not_parsed_as_a_form(inside: AwsInside, bucket: str, kind: str) -> None:
    grant(inside, {"Action": "s3:DeleteObject", "Resource": f"arn:aws:s3:::{bucket}/mine/*"})
    inner = "<Delete><Object><Key>secret/q.json</Key></Object></Delete>"
    parts = "".join(
        f'\r\n--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}'
        for name, value in (("key", "x"), ("file", inner))
    )
    body = f"<Delete><Object><Key>mine/a</Key></Object></Delete><?x {parts}\r\n--B--\r\n?>".encode()
    inside.send(inside.user, "s3", "POST", f"/{bucket}?delete", {"content-type": kind}, body)
    assert "secret/q.json" in keys_of(inside)


def test_an_object_version_is_read_from_the_query_only(inside: AwsInside, bucket: str) -> None:
    """moto also reads it from a body, and treats an empty one as missing."""
    s3 = inside.client(inside.deployer, "s3")
    s3.create_bucket(Bucket="old")
    s3.put_bucket_versioning(Bucket="old", VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket="old", Key="a", Body=b"1")["VersionId"]
    s3.put_object(Bucket="old", Key="a", Body=b"2")

    def kept() -> int:
        rows = s3.list_object_versions(Bucket="old")
        return len(rows.get("Versions", ())) + len(rows.get("DeleteMarkers", ()))

    grant(inside, {"Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::old/*"})
    body = json.dumps({"versionId": version}).encode()
    for target in ("/old/a", "/old/a?x-id=DeleteObject"):
        inside.send(inside.user, "s3", "DELETE", target, {}, body)
    assert version in {row["VersionId"] for row in s3.list_object_versions(Bucket="old")["Versions"]}
    grant(inside, {"Action": "s3:DeleteObjectVersion", "Resource": "arn:aws:s3:::old/*"})
    before = kept()
    assert inside.send(inside.user, "s3", "DELETE", "/old/a?versionId=").status == 400
    assert kept() == before


def test_an_encoded_bucket_name_has_one_meaning(inside: AwsInside) -> None:
    grant(inside, {"Action": "s3:CreateBucket", "Resource": "arn:aws:s3:::my-own"})
    inside.send(inside.user, "s3", "PUT", "/my%2Down")
    names = {row["Name"] for row in inside.ask(inside.deployer, "s3", "ListBuckets")["Buckets"]}
    assert "my%2Down" not in names
    assert "my-own" in names


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-copy-source": "/team/secret/q.json"}, {"x-amz-copy-source": "team/secret%2Fq.json"},
        {"x-amz-tagging": "a=b"}, {"x-amz-acl": "public-read"}, {"x-amz-grant-read": "id=x"},
        {"x-amz-meta-a": "b"}, {"x-amz-storage-class": "GLACIER"},
        {"x-amz-copy-source": "team/secret/q.json", "x-amz-content-sha256": "UNSIGNED-PAYLOAD"},
    ],
)  # fmt: skip
def test_a_presigned_link_allows_only_its_own_operation(
    inside: AwsInside, bucket: str, headers: dict[str, str]
) -> None:
    before = keys_of(inside)
    target = linked(inside.deployer, "PUT", f"/{bucket}/shared/x")
    reply = inside.answer(through_link("PUT", target, headers), b"")
    assert (reply.status, b"not signed" in reply.content) == (403, True)
    assert keys_of(inside) == before


def test_a_presigned_link_accepts_no_unsigned_headers(inside: AwsInside, bucket: str) -> None:
    for headers in ({}, {"content-type": "text/plain"}, {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}):
        target = linked(inside.deployer, "PUT", f"/{bucket}/shared/x")
        assert inside.answer(through_link("PUT", target, headers), b"new").status == 200, headers
    assert keys_of(inside)["shared/x"] == b"new"


def test_an_upload_id_must_belong_to_the_key_that_was_checked(inside: AwsInside, bucket: str) -> None:
    s3 = inside.client(inside.deployer, "s3")
    upload = s3.create_multipart_upload(Bucket=bucket, Key=CODE)["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key=CODE, UploadId=upload, PartNumber=1, Body=b"good")
    grant(inside, {"Action": ["s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:GetObject"],
                   "Resource": f"arn:aws:s3:::{bucket}/mine/*"})  # fmt: skip
    listed = f"<Part><PartNumber>1</PartNumber><ETag>{part['ETag']}</ETag></Part>"
    complete = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
    here = f"/{bucket}/mine/a?uploadId={upload}"
    for method, target, headers, body in (
        ("GET", here, {}, b""), ("PUT", f"{here}&partNumber=1", {}, b"EVIL"), ("POST", here, {}, complete),
        ("PUT", f"{here}&partNumber=1", {"x-amz-copy-source": f"{bucket}/mine/a"}, b""), ("DELETE", here, {}, b""),
    ):  # fmt: skip
        reply = inside.send(inside.user, "s3", method, target, headers, body)
        assert (reply.status, b"NoSuchUpload" in reply.content) == (404, True), (method, reply.content)
    rows = s3.list_parts(Bucket=bucket, Key=CODE, UploadId=upload)["Parts"]
    assert [row["ETag"] for row in rows] == [part["ETag"]]
    assert keys_of(inside)[CODE] == f"content of {CODE}".encode()
    for _ in range(2):  # the second time it says the same
        s3.complete_multipart_upload(Bucket=bucket, Key=CODE, UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})  # fmt: skip
    assert keys_of(inside)[CODE] == b"good"


SSM = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "AmazonSSM.PutParameter"}


def test_a_broken_body_is_the_senders_fault(inside: AwsInside, bucket: str) -> None:
    """Such a request causes neither an internal error nor work: earlier, moto's state was read again for each."""
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    tagging = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    bodies: list[tuple[str, str, str, dict[str, str], bytes]] = [
        ("s3", "PUT", f"/{bucket}?policy", {}, policy.encode("utf-16")),
        ("s3", "PUT", f"/{bucket}?policy", {}, b"\xef\xbb\xbf" + policy.encode()),
        ("s3", "PUT", f"/{bucket}?policy", {}, b'{"Statement":[],"Statement":[]}'),
        *(("s3", "PUT", f"/{bucket}?tagging", {}, body) for body in (
            tagging.encode("utf-16"), b"\xef\xbb\xbf" + tagging.encode(), b"", b"\xff", b"<Tagging/>", b"<" * 5000,
            f'<?xml version="1.0" encoding="UTF-7"?>{tagging}x'.encode(), b"<Tagging>" * 5000,
        )),
        ("s3", "PUT", f"/{bucket}?versioning", {}, "<VersioningConfiguration/>".encode("utf-16")),
        ("s3", "PUT", f"/{bucket}?lifecycle", {}, b"<LifecycleConfiguration><Rule>x</Rule></LifecycleConfiguration>"),
        ("s3", "POST", f"/{bucket}/a?uploadId=x", {}, b"\x00"),
        ("s3", "PUT", f"/{bucket}/a", {"x-amz-copy-source": bucket}, b""),
        ("ssm", "POST", "/", SSM, '{"Name": "a"}'.encode("utf-16")), ("ssm", "POST", "/", SSM, b"\xef\xbb\xbf{}"),
        ("ssm", "POST", "/", SSM, b'{"Name": "a", "Name": "b", "Value": "c"}'),
        ("ssm", "POST", "/", SSM, b'{"Name": ["a"], "Value": {"a": 1}}'), ("ssm", "POST", "/", SSM, b'{"Tier": 1e999}'),
        ("ec2", "POST", "/", FORM, "Action=DescribeVpcs".encode("utf-16")),
        ("ec2", "POST", "/", FORM, b"Action=DescribeVpcs&MaxResults=x"),
        ("ec2", "POST", "/", FORM, b"Action=DescribeVpcs&X=%ED%A0%80"),
        ("iam", "POST", "/", FORM, b"Action=ListUsers&MaxItems=1.5"),
    ]  # fmt: skip
    for service, method, target, headers, body in bodies:
        reply = inside.send(inside.deployer, service, method, target, headers, body)
        assert 400 <= reply.status < 500, (service, target, body[:80], reply.status, reply.content)


def test_text_inside_json_is_not_parsed_as_a_parameter(inside: AwsInside) -> None:
    ssm = inside.client(inside.deployer, "ssm")
    for name, value in (("kept", "kept"), ("odd", "&Action=DeleteParameter&Name=kept&x=%26\u2028\U0001f600")):
        ssm.put_parameter(Name=name, Value=value, Type="String")
        assert ssm.get_parameter(Name=name)["Parameter"]["Value"] == value
    assert ssm.get_parameter(Name="kept")["Parameter"]["Value"] == "kept"


def test_a_chunked_body_is_joined_at_the_border(inside: AwsInside, bucket: str) -> None:
    from base64 import b64encode
    from zlib import crc32

    content = b"0123456789" * 3
    checksum = b64encode(crc32(content).to_bytes(4, "big")).decode()
    headers = {
        "content-encoding": "aws-chunked", "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": str(len(content)), "x-amz-trailer": "x-amz-checksum-crc32",
        "x-amz-sdk-checksum-algorithm": "CRC32",
    }  # fmt: skip

    def put(text: str, **more: str) -> Reply:
        head = {**headers, **more}
        return inside.send(inside.deployer, "s3", "PUT", f"/{bucket}/mine/pieces", head, text.encode())

    pieces = f"a\r\n0123456789\r\n14\r\n{'0123456789' * 2}\r\n0\r\n"
    assert put(f"{pieces}x-amz-checksum-crc32:{checksum}\r\n\r\n").status == 200
    held = inside.ask(inside.deployer, "s3", "GetObject", Bucket=bucket, Key="mine/pieces")
    assert (held["Body"].read(), held.get("ContentEncoding")) == (content, None)
    for text in (
        f"{pieces}x-amz-checksum-crc32:AAAAAA==\r\n\r\n",
        f"{pieces}x-amz-tagging:a=b\r\n\r\n",
        pieces[:20],
        f"a\r\n0123456789\r\n0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n",
        "-1\r\n",
        "",
        f"+a\r\n{pieces}",
    ):
        assert put(text).status == 400, text
    assert put(f"{pieces}x-amz-tagging:a=b\r\n\r\n", **{"x-amz-trailer": "x-amz-tagging"}).status == 400


def test_the_effect_of_a_header_needs_its_own_permission(inside: AwsInside, bucket: str) -> None:
    grant(inside, {"Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{bucket}/mine/*"})
    for headers in (
        {"x-amz-tagging": "a=b"}, {"x-amz-acl": "bucket-owner-full-control"}, {"x-amz-grant-read": "id=x"},
        {"x-amz-object-lock-legal-hold": "ON"},
    ):  # fmt: skip
        reply = inside.send(inside.user, "s3", "PUT", f"/{bucket}/mine/a", headers, b"x")
        assert (reply.status, b"AccessDenied" in reply.content) == (403, True), headers


def test_an_unsigned_header_cannot_choose_the_operation(inside: AwsInside) -> None:
    """An unsigned header could choose the operation of a signed body."""
    nobody = Sender(inside.deployer.key, "x" * 40)
    request = signed(nobody, "ssm", "POST", "/", SSM, b"{}")
    assert inside.answer(request, b"{}").status == 400


def test_access_is_checked_for_the_resource_behind_an_alias(inside: AwsInside) -> None:
    """If a policy denies access to a resource, that holds for its other names, too: versions, aliases, ARNs."""
    ssm, kms = inside.client(inside.deployer, "ssm"), inside.client(inside.deployer, "kms")
    ssm.put_parameter(Name="/team/secret", Value="TOP-SECRET", Type="String")
    key = kms.create_key()["KeyMetadata"]
    kms.create_alias(AliasName="alias/secret", TargetKeyId=key["KeyId"])
    prefix = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter"
    grant(inside, {"Action": ["ssm:*", "kms:*"]},
          {"Effect": "Deny", "Action": "*", "Resource": [f"{prefix}/team/secret", key["Arn"]]})  # fmt: skip
    user = inside.client(inside.user, "ssm")
    full = f"{prefix}/team/secret"
    for name in ("/team/secret", "/team/secret:1", full, f"{full}:1", f"{prefix}{full}", f"{prefix}//team/secret",
                 f"{prefix}/team/{prefix}secret"):  # fmt: skip
        with pytest.raises(Exception, match=r"AccessDenied|ParameterNotFound|Validation"):
            user.get_parameter(Name=name)
    elsewhere = key["Arn"].replace("us-east-1", "eu-west-1")
    for name in (key["KeyId"], key["Arn"], "alias/secret", f"arn:aws:kms:us-east-1:{ACCOUNT}:alias/secret", elsewhere,
                 f"arn:aws:kms:us-east-1:{ACCOUNT}:key/{key['KeyId']}:key/x"):  # fmt: skip
        with pytest.raises(Exception, match=r"AccessDenied|NotFound|Validation"):
            inside.ask(inside.user, "kms", "DisableKey", KeyId=name)
    assert kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["Enabled"]
