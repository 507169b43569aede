# SPDX-License-Identifier: Apache-2.0
"""A drift reads types by their rows: whether a resource is there, and the inputs that the row compares."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from components.aws.client.live import LiveReader
from components.platform.client import Where
from components.platform.live import LiveQuestion
from components.platform.review import ReviewedResource, Snapshot

LOG_GROUP, SECRET = "aws:cloudwatch/logGroup:LogGroup", "aws:secretsmanager/secret:Secret"
POLICY = '{"Statement": [{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::1:user/ann"}, "Action": "*"}]}'


def resource(kind: str, identity: str, **inputs: Any) -> ReviewedResource:
    return ReviewedResource(kind, identity, f"urn::{kind}::{identity}", "", inputs, id=identity)


def read_live(*declared: ReviewedResource, policy: str | None = None, **answers: Any) -> tuple[ReviewedResource, ...]:
    """The live side. `answers`: by the name of a call of botocore's client."""
    calls = {"get_resource_policy": {"ResourcePolicy": policy}, **answers}
    client = SimpleNamespace(**{name: lambda answer=answer, **_: answer for name, answer in calls.items()})
    session: Any = SimpleNamespace(client=lambda service: client)
    reader = LiveReader(LiveQuestion(Snapshot("demo", "aws-dl1", {}, declared), Where({})), session)
    reader.read_described()
    return reader.reading.side({}).snapshot.resources


def test_inputs_that_the_row_compares_are_those_of_the_cloud() -> None:
    groups = {"logGroups": [{"logGroupName": "demo", "retentionInDays": 3}, {"logGroupName": "demo-more"}]}
    declared = resource(LOG_GROUP, "demo", name="demo", retentionInDays=30)
    [live] = read_live(declared, describe_log_groups=groups)
    assert live.inputs == {"name": "demo", "retentionInDays": 3}
    assert read_live(declared, describe_log_groups={"logGroups": []}) == ()


def test_a_secret_whose_deletion_is_scheduled_is_missing() -> None:
    declared = resource(SECRET, "arn:aws:secretsmanager:us-east-1:1:secret:s-1", name="s")
    assert read_live(declared, describe_secret={"Name": "s"}) == (declared,)
    assert read_live(declared, describe_secret={"Name": "s", "DeletedDate": "2026-01-01"}) == ()


def test_a_policy_that_others_put_on_a_resource_is_found() -> None:
    declared = resource(SECRET, "arn:aws:secretsmanager:us-east-1:1:secret:s-1", name="s")
    _, policy = read_live(declared, policy=POLICY, describe_secret={"Name": "s"})
    assert policy.type == "aws:secretsmanager/secretPolicy:SecretPolicy"
    assert policy.inputs == {"secretArn": declared.id, "policy": POLICY}


def test_another_current_version_of_a_secret_is_another_value() -> None:
    secret = "arn:aws:secretsmanager:us-east-1:1:secret:s-1"
    declared = resource("aws:secretsmanager/secretVersion:SecretVersion", f"{secret}|old", secretId=secret)
    old, new = (
        {"VersionId": "old", "VersionStages": ["AWSPREVIOUS"]},
        {"VersionId": "new", "VersionStages": ["AWSCURRENT"]},
    )
    [live] = read_live(declared, list_secret_version_ids={"Versions": [old, new]})
    assert live.inputs["id"] == f"{secret}|new"
    [live] = read_live(declared, list_secret_version_ids={"Versions": [{**old, "VersionStages": ["AWSCURRENT"]}]})
    assert live.inputs["id"] == declared.id


def test_settings_of_a_bucket_that_is_gone_are_not_said_one_by_one() -> None:
    def gone(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "404"}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "HeadBucket")

    bucket = resource("aws:s3/bucket:Bucket", "data", bucket="data")
    setting = resource("aws:s3/bucketPolicy:BucketPolicy", "data", bucket="data", policy="{}")
    client = SimpleNamespace(head_bucket=gone)
    session: Any = SimpleNamespace(client=lambda service: client)
    reader = LiveReader(LiveQuestion(Snapshot("demo", "aws-dl1", {}, (bucket, setting)), Where({})), session)
    reader.read_described()
    assert reader.reading.side({}).snapshot.resources == (setting,)


@pytest.mark.parametrize("tags", [{"stack": "demo"}, {"stack": "other", "more": "x"}, {}])
def test_a_declared_tag_that_is_gone_or_another_is_drift(tags: dict[str, str]) -> None:
    declared = resource(SECRET, "arn:aws:secretsmanager:us-east-1:1:secret:s-1", name="s", tags={"stack": "demo"})
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    [live] = read_live(declared, describe_secret={"Name": "s", "Tags": listed})
    assert live.inputs["tags"] == {key: value for key, value in tags.items() if key == "stack"}
