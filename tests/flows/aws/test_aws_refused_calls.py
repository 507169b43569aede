# SPDX-License-Identifier: Apache-2.0
"""Calls that AWS refuses for one reason, by AWS's own client: one row a call, with AWS's code and status."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients, refused

ACCOUNT = "123456789012"
TRUST = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/deployer"}, "Action": "sts:AssumeRole"}
]})  # fmt: skip
# A tag that only AWS itself gives.
SYSTEM = [{"Key": "aws:x", "Value": "1"}]


class RefusedCall(NamedTuple):
    title: str
    service: str
    operation: str
    parameters: Mapping[str, Any]  # `{vpc}` and others of the stage are filled in
    code: str
    status: int = 400


def named(bucket: str) -> RefusedCall:
    return RefusedCall(f"a bucket called {bucket}", "s3", "create_bucket", {"Bucket": bucket}, "InvalidBucketName")


REFUSED = (
    *map(named, ("Upper-Case", "under_score", "two..dots", "192.168.10.1", "xn--name", "name-s3alias", "a" * 64)),
    RefusedCall(
        "parts in another order", "s3", "complete_multipart_upload",
        {"Bucket": "{bucket}", "Key": "parts", "UploadId": "{upload}", "MultipartUpload": {"Parts": [
            {"PartNumber": 2, "ETag": "{etag}"}, {"PartNumber": 1, "ETag": "{etag}"},
        ]}},
        "InvalidPartOrder",
    ),
    RefusedCall(
        "a copy of an object to itself", "s3", "copy_object",
        {"Bucket": "{bucket}", "Key": "a", "CopySource": "{bucket}/a"}, "InvalidRequest",
    ),
    RefusedCall(
        "a malformed id of an instance", "ec2", "describe_instances", {"InstanceIds": ["i-xyz"]},
        "InvalidInstanceID.Malformed",
    ),
    RefusedCall(
        "a malformed id that is stopped", "ec2", "stop_instances", {"InstanceIds": ["{vpc}"]},
        "InvalidInstanceID.Malformed",
    ),
    RefusedCall(
        "an unknown id of an instance", "ec2", "describe_instances", {"InstanceIds": ["i-0123456789abcdef0"]},
        "InvalidInstanceID.NotFound",
    ),
    RefusedCall(
        "an unknown fleet", "ec2", "describe_fleets", {"FleetIds": ["fleet-12345678-1234-1234-1234-123456789012"]},
        "InvalidFleetId.NotFound",
    ),
    RefusedCall(
        "a subnet in a zone of another region", "ec2", "create_subnet",
        {"VpcId": "{vpc}", "CidrBlock": "10.77.1.0/24", "AvailabilityZone": "eu-west-1a"}, "InvalidParameterValue",
    ),
    RefusedCall(
        "a subnet in a zone of another region, by its id", "ec2", "create_subnet",
        {"VpcId": "{vpc}", "CidrBlock": "10.77.1.0/24", "AvailabilityZoneId": "euw1-az1"}, "InvalidParameterValue",
    ),
    *(
        RefusedCall(
            f"a group called {name}", "ec2", "create_security_group",
            {"VpcId": "{vpc}", "GroupName": name, "Description": "x"}, "InvalidParameterValue",
        )
        for name in ("default", "sg-mine", "ä", "a{b}\"")
    ),
    *(
        RefusedCall(
            f"a group described as {text}", "ec2", "create_security_group",
            {"VpcId": "{vpc}", "GroupName": "described", "Description": text}, "InvalidParameterValue",
        )
        for text in ("ä", '"')
    ),
    RefusedCall("AWS's tag on a network", "ec2", "create_tags", {"Resources": ["{vpc}"], "Tags": SYSTEM},
                "InvalidParameterValue"),
    RefusedCall(
        "AWS's tag on a new network", "ec2", "create_vpc",
        {"CidrBlock": "10.78.0.0/16", "TagSpecifications": [{"ResourceType": "vpc", "Tags": SYSTEM}]},
        "InvalidParameterValue",
    ),
    RefusedCall("AWS's tag on a role", "iam", "tag_role", {"RoleName": "sessions", "Tags": SYSTEM}, "InvalidInput"),
    RefusedCall(
        "AWS's tag on a log group", "logs", "create_log_group", {"logGroupName": "x", "tags": {"aws:x": "1"}},
        "ValidationException",
    ),
    RefusedCall(
        "AWS's tag on a new bucket", "s3", "create_bucket",
        {"Bucket": "tagged-by-nobody", "CreateBucketConfiguration": {"Tags": SYSTEM}}, "InvalidTag",
    ),
    RefusedCall("a disabled key", "kms", "encrypt", {"KeyId": "{disabled}", "Plaintext": b"x"}, "DisabledException"),
    RefusedCall(
        "a disabled key, by its alias", "kms", "generate_data_key", {"KeyId": "alias/off", "KeySpec": "AES_256"},
        "DisabledException",
    ),
    RefusedCall("what a disabled key encrypted", "kms", "decrypt", {"CiphertextBlob": "{sealed}"}, "DisabledException"),
    RefusedCall(
        "a key that waits for its deletion", "kms", "encrypt", {"KeyId": "{leaving}", "Plaintext": b"x"},
        "KMSInvalidStateException",
    ),
    RefusedCall("a missing secret", "secretsmanager", "get_secret_value", {"SecretId": "no"},
                "ResourceNotFoundException"),
    RefusedCall(
        "a secret whose name waits for deletion", "secretsmanager", "create_secret",
        {"Name": "leaving", "SecretString": "x"}, "InvalidRequestException",
    ),
    RefusedCall("a missing repository", "ecr", "describe_repositories", {"repositoryNames": ["missing"]},
                "RepositoryNotFoundException"),
    RefusedCall("a session's channel", "ssm", "start_session", {"Target": "i-0123456789abcdef0"},
                "UnknownOperationException"),
)  # fmt: skip


@pytest.fixture(scope="module")
def stage(aws: AwsClients) -> Mapping[str, Any]:
    """What the calls name."""
    s3, kms, secrets = aws["s3"], aws["kms"], aws["secretsmanager"]
    s3.create_bucket(Bucket="refused-calls")
    s3.put_object(Bucket="refused-calls", Key="a", Body=b"content")
    upload = {"Bucket": "refused-calls", "Key": "parts"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    etags = [s3.upload_part(**upload, PartNumber=number, Body=b"part")["ETag"] for number in (1, 2)]
    disabled, leaving = (kms.create_key()["KeyMetadata"]["KeyId"] for _ in range(2))
    sealed = kms.encrypt(KeyId=disabled, Plaintext=b"x")["CiphertextBlob"]
    kms.create_alias(AliasName="alias/off", TargetKeyId=disabled)
    kms.disable_key(KeyId=disabled)
    kms.schedule_key_deletion(KeyId=leaving, PendingWindowInDays=7)
    secrets.create_secret(Name="leaving", SecretString="x")
    secrets.delete_secret(SecretId="leaving", RecoveryWindowInDays=7)
    aws["iam"].create_role(RoleName="sessions", AssumeRolePolicyDocument=TRUST)
    return {
        "bucket": "refused-calls", "upload": upload["UploadId"], "etag": etags[0], "disabled": disabled,
        "leaving": leaving, "sealed": sealed, "vpc": aws["ec2"].create_vpc(CidrBlock="10.77.0.0/16")["Vpc"]["VpcId"],
    }  # fmt: skip


def filled(value: Any, stage: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: filled(item, stage) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, stage) for item in value]
    if isinstance(value, str):
        for name, text in stage.items():
            if value == f"{{{name}}}":
                return text
            value = value.replace(f"{{{name}}}", text) if isinstance(text, str) else value
    return value


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.title)
def test_a_call_is_refused_as_aws_refuses_it(aws: AwsClients, stage: Mapping[str, Any], row: RefusedCall) -> None:
    call: Callable[..., Any] = getattr(aws[row.service], row.operation)
    with pytest.raises(ClientError) as seen:
        call(**filled(row.parameters, stage))
    response = seen.value.response
    assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (row.code, row.status)


def test_a_copy_to_itself_that_changes_something_is_made(aws: AwsClients, stage: Mapping[str, Any]) -> None:
    itself = {"Bucket": "refused-calls", "Key": "a", "CopySource": "refused-calls/a"}
    assert stage
    for change in ({"MetadataDirective": "REPLACE"}, {"StorageClass": "STANDARD"}, {"ServerSideEncryption": "AES256"}):
        aws["s3"].copy_object(**itself, **change)


@pytest.mark.parametrize(
    ("service", "operation", "code", "status"),
    [
        ("s3", "list_buckets", "InvalidAccessKeyId", 403),
        ("ec2", "describe_vpcs", "AuthFailure", 401),
        ("sts", "get_caller_identity", "InvalidClientTokenId", 403),
        ("ssm", "describe_instance_information", "UnrecognizedClientException", 400),
    ],
)
def test_a_temporary_key_without_its_token_is_unknown(
    aws: AwsClients, stage: Mapping[str, Any], service: str, operation: str, code: str, status: int
) -> None:
    assert stage
    role = f"arn:aws:iam::{ACCOUNT}:role/sessions"
    keys = aws["sts"].assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    without = aws.with_keys(keys["AccessKeyId"], keys["SecretAccessKey"])
    with pytest.raises(ClientError) as seen:
        getattr(without[service], operation)()
    response = seen.value.response
    assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (code, status)


def test_a_request_without_any_header_of_aws_gets_the_answer_of_oci(shared_cloud: Cloud) -> None:
    """As the page of differences says: the cloud has one endpoint for all."""
    with pytest.raises(urllib.error.HTTPError) as seen:
        urllib.request.urlopen(f"{shared_cloud.endpoint}/refused-calls/a", timeout=30)
    seen.value.close()
    assert seen.value.code == 401


@pytest.fixture
def user(aws: AwsClients, shared_cloud: Cloud) -> Any:
    """The user, who may do only what a test allows."""
    group = {"GroupName": "scientists", "PolicyName": "refused-calls"}

    def allow(*actions: str) -> AwsClients:
        statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        aws["iam"].put_group_policy(**group, PolicyDocument=document)
        return AwsClients(shared_cloud, "user")

    yield allow
    aws["iam"].delete_group_policy(**group)


def test_a_bucket_with_tags_needs_the_permission_to_tag_and_keeps_them(
    aws: AwsClients, user: Callable[..., AwsClients]
) -> None:
    tags = [{"Key": "team", "Value": "vision"}, {"Key": "stack", "Value": ""}]
    made = {"Bucket": "tagged-at-once", "CreateBucketConfiguration": {"Tags": tags}}
    assert refused(user("s3:CreateBucket")["s3"].create_bucket, **made)[0] == "AccessDenied"
    assert refused(aws["s3"].head_bucket, Bucket="tagged-at-once")[0] == "404"
    user("s3:CreateBucket")["s3"].create_bucket(Bucket="never-tagged")
    user("s3:CreateBucket", "s3:TagResource")["s3"].create_bucket(**made)
    assert aws["s3"].get_bucket_tagging(Bucket="tagged-at-once")["TagSet"] == tags


def test_private_names_of_an_endpoint_need_the_permission_for_its_zone(
    aws: AwsClients, stage: Mapping[str, Any], user: Callable[..., AwsClients]
) -> None:
    subnet = aws["ec2"].create_subnet(VpcId=stage["vpc"], CidrBlock="10.77.9.0/24")["Subnet"]["SubnetId"]
    wanted = {
        "VpcId": stage["vpc"], "ServiceName": "com.amazonaws.us-east-1.logs", "VpcEndpointType": "Interface",
        "SubnetIds": [subnet],
    }  # fmt: skip
    named = {**wanted, "PrivateDnsEnabled": True}
    code, message = refused(user("ec2:CreateVpcEndpoint")["ec2"].create_vpc_endpoint, **named)
    assert (code, "route53:AssociateVPCWithHostedZone" in message) == ("UnauthorizedOperation", True)
    user("ec2:CreateVpcEndpoint")["ec2"].create_vpc_endpoint(**wanted, PrivateDnsEnabled=False)
    zones = user("ec2:CreateVpcEndpoint", "route53:AssociateVPCWithHostedZone")["ec2"]
    zones.create_vpc_endpoint(**named)
