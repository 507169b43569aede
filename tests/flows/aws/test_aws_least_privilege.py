# SPDX-License-Identifier: Apache-2.0
"""Proves least privilege of AWS DL1: for each action of each statement there is a call that is refused without it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from components.aws.statements import AwsStatement, aws_policies, policy_document
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.aws_plans import aws_plan

PLAN = aws_plan()
BUCKET, REPOSITORY, LOGS = PLAN.bucket.name, PLAN.registry.repository, PLAN.logs.group_name
FOLDER = "resnet/base/1/s00000001"
STREAM = {"logGroupName": LOGS, "logStreamName": "00000001/main-0"}
REFUSALS = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
PART = {"repositoryName": REPOSITORY, "uploadId": "1", "partFirstByte": 0, "partLastByte": 0, "layerPartBlob": b"a"}
LAYERS = {"repositoryName": REPOSITORY, "layerDigests": [f"sha256:{'ab' * 32}"]}
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json"})

Stage = Mapping[str, str]
Attempt = Callable[[AwsClients, Stage], Any]
# The calls for each action. A call that passes the access check, but that the local AWS does not implement, counts as
# allowed.
CALLS: Mapping[str, Attempt] = {
    "ecr:BatchCheckLayerAvailability": lambda of, _: of["ecr"].batch_check_layer_availability(**LAYERS),
    "ecr:BatchGetImage": lambda of, _: of["ecr"].batch_get_image(
        repositoryName=REPOSITORY, imageIds=[{"imageTag": "1.0"}]
    ),
    "ecr:CompleteLayerUpload": lambda of, _: of["ecr"].complete_layer_upload(**LAYERS, uploadId="1"),
    "ecr:DescribeImages": lambda of, _: of["ecr"].describe_images(repositoryName=REPOSITORY),
    "ecr:DescribeRepositories": lambda of, _: of["ecr"].describe_repositories(repositoryNames=[REPOSITORY]),
    "ecr:GetAuthorizationToken": lambda of, _: of["ecr"].get_authorization_token(),
    "ecr:GetDownloadUrlForLayer": lambda of, _: of["ecr"].get_download_url_for_layer(
        repositoryName=REPOSITORY, layerDigest=LAYERS["layerDigests"][0]
    ),
    "ecr:InitiateLayerUpload": lambda of, _: of["ecr"].initiate_layer_upload(repositoryName=REPOSITORY),
    "ecr:PutImage": lambda of, _: of["ecr"].put_image(
        repositoryName=REPOSITORY, imageManifest=MANIFEST, imageTag="2.0"
    ),
    "ecr:UploadLayerPart": lambda of, _: of["ecr"].upload_layer_part(**PART),
    "ec2:DescribeInstances": lambda of, _: of["ec2"].describe_instances(),
    "ec2:StartInstances": lambda of, at: of["ec2"].start_instances(InstanceIds=[at["ours"]], DryRun=True),
    "ssm:DescribeInstanceInformation": lambda of, _: of["ssm"].describe_instance_information(),
    "ssm:ResumeSession": lambda of, at: of["ssm"].resume_session(SessionId=f"{at['user']}-0a1b2c3d5eEXAMPLE"),
    "ssm:SendCommand": lambda of, at: of["ssm"].send_command(
        InstanceIds=[at["ours"]], DocumentName="AWS-RunShellScript", Parameters={"commands": ["true"]}
    ),
    "ssm:StartSession": lambda of, at: of["ssm"].start_session(
        Target=at["ours"], DocumentName="SSM-SessionManagerRunShell"
    ),
    "ssm:TerminateSession": lambda of, at: of["ssm"].terminate_session(SessionId=f"{at['user']}-0a1b2c3d5eEXAMPLE"),
    "logs:CreateLogStream": lambda of, _: of["logs"].create_log_stream(logGroupName=LOGS, logStreamName="new"),
    "logs:DescribeLogStreams": lambda of, _: of["logs"].describe_log_streams(logGroupName=LOGS),
    "logs:FilterLogEvents": lambda of, _: of["logs"].filter_log_events(logGroupName=LOGS),
    "logs:GetLogEvents": lambda of, _: of["logs"].get_log_events(**STREAM),
    "logs:PutLogEvents": lambda of, _: of["logs"].put_log_events(
        **STREAM, logEvents=[{"timestamp": int(time.time() * 1000), "message": "step"}]
    ),
    "s3:AbortMultipartUpload": lambda of, _: of["s3"].abort_multipart_upload(
        Bucket=BUCKET, Key=f"{FOLDER}/part", UploadId="1"
    ),
    "s3:DeleteObject": lambda of, _: of["s3"].delete_object(Bucket=BUCKET, Key=f"{FOLDER}/gone"),
    "s3:GetObject": lambda of, _: of["s3"].get_object(Bucket=BUCKET, Key="data/a"),
    "s3:ListBucket": lambda of, _: of["s3"].list_objects_v2(Bucket=BUCKET, Prefix=".trainyard/"),
    "s3:ListBucketMultipartUploads": lambda of, _: of["s3"].list_multipart_uploads(Bucket=BUCKET),
    "s3:ListMultipartUploadParts": lambda of, _: of["s3"].list_parts(
        Bucket=BUCKET, Key=f"{FOLDER}/part", UploadId="1"
    ),
    "s3:PutObject": lambda of, _: of["s3"].put_object(Bucket=BUCKET, Key=f"{FOLDER}/status/0.json", Body=b"{}"),
    "secretsmanager:GetSecretValue": lambda of, _: of["secretsmanager"].get_secret_value(
        SecretId="vision-dev-resnet/ssh"
    ),
}  # fmt: skip
# Actions that cannot be tried: those of the agent of Systems Manager, which has its own protocol, and those of a
# service that the local AWS does not have.
NOT_TRIED = ("cloudwatch:", "ec2messages:", "ssmmessages:", "ssm:UpdateInstanceInformation")
# Calls that no statement of the stack may allow.
OUTSIDE: Mapping[str, Mapping[str, Attempt]] = {
    "runs": {
        "another's ticket": lambda of, _: of["s3"].put_object(
            Bucket=BUCKET, Key=".trainyard/clusters/resnet/queue/00000001.json", Body=b"{}"
        ),
        "the launcher": lambda of, _: of["s3"].put_object(Bucket=BUCKET, Key=".trainyard/launcher/a.tar.gz", Body=b""),
        "the code": lambda of, _: of["s3"].put_object(Bucket=BUCKET, Key=".trainyard/code/a.tar.gz", Body=b""),
        "other folders": lambda of, _: of["s3"].delete_object(Bucket=BUCKET, Key="bert/base/1/a"),
        "another bucket": lambda of, _: of["s3"].get_object(Bucket="company-data", Key="a"),
        "another secret": lambda of, _: of["secretsmanager"].get_secret_value(SecretId="vision-dev-bert/ssh"),
        "its own machine": lambda of, at: of["ec2"].terminate_instances(InstanceIds=[at["ours"]], DryRun=True),
        "commands": lambda of, at: of["ssm"].send_command(
            InstanceIds=[at["ours"]], DocumentName="AWS-RunShellScript", Parameters={"commands": ["true"]}
        ),
        "images": lambda of, _: of["ecr"].put_image(repositoryName=REPOSITORY, imageManifest=MANIFEST, imageTag="3.0"),
    },
    "users": {
        "others' machines": lambda of, at: of["ec2"].start_instances(InstanceIds=[at["theirs"]], DryRun=True),
        "commands on others": lambda of, at: of["ssm"].send_command(
            InstanceIds=[at["theirs"]], DocumentName="AWS-RunShellScript", Parameters={"commands": ["true"]}
        ),
        "another document": lambda of, at: of["ssm"].send_command(
            InstanceIds=[at["ours"]], DocumentName="AWS-RunRemoteScript"
        ),
        "the end of a machine": lambda of, at: of["ec2"].terminate_instances(InstanceIds=[at["ours"]], DryRun=True),
        "secrets": lambda of, _: of["secretsmanager"].get_secret_value(SecretId="vision-dev-resnet/ssh"),
        "another bucket": lambda of, _: of["s3"].get_object(Bucket="company-data", Key="a"),
        "another repository": lambda of, _: of["ecr"].describe_images(repositoryName="company/images"),
        "others' sessions": lambda of, _: of["ssm"].terminate_session(SessionId="other-0a1b2c3d5eEXAMPLE"),
        "the bucket itself": lambda of, _: of["s3"].put_bucket_policy(Bucket=BUCKET, Policy="{}"),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def user(shared_cloud: Cloud) -> AwsClients:
    return AwsClients(shared_cloud, "user")


@pytest.fixture(scope="module")
def stage(aws: AwsClients, user: AwsClients) -> Iterator[Stage]:
    """The resources of a stack, and the same of another."""
    for bucket in (BUCKET, "company-data"):
        aws["s3"].create_bucket(Bucket=bucket)
        aws["s3"].put_object(Bucket=bucket, Key="data/a", Body=b"1")
    for repository in (REPOSITORY, "company/images"):
        aws["ecr"].create_repository(repositoryName=repository)
    aws["ecr"].put_image(repositoryName=REPOSITORY, imageManifest=MANIFEST, imageTag="1.0")
    aws["logs"].create_log_group(logGroupName=LOGS)
    aws["logs"].create_log_stream(**STREAM)
    for secret in ("vision-dev-resnet/ssh", "vision-dev-bert/ssh"):
        aws["secretsmanager"].create_secret(Name=secret, SecretString="key")
    ec2 = aws["ec2"]
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    launch = {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-0d11a1b2c3d4e5f60", "InstanceType": "dl1.24xlarge"}
    instances = {}
    for name, stack in (("ours", PLAN.stack), ("theirs", "vision-prod")):
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "stack", "Value": stack}]}]
        made = ec2.run_instances(**launch, SubnetId=subnet, TagSpecifications=tags)["Instances"][0]
        instances[name] = made["InstanceId"]
    # Session Manager begins the id of a session with the name of the IAM user, not with their id.
    yield {**instances, "user": user["sts"].get_caller_identity()["Arn"].rpartition("/")[2]}
    ec2.terminate_instances(InstanceIds=list(instances.values()))


@pytest.fixture
def granted(aws: AwsClients) -> Iterator[Callable[[list[AwsStatement]], None]]:
    """Puts statements in force for the user, until the test ends."""

    def put(statements: list[AwsStatement]) -> None:
        document = json.dumps(policy_document(statements))
        aws["iam"].put_user_policy(UserName="user", PolicyName="proof", PolicyDocument=document)

    yield put
    aws["iam"].delete_user_policy(UserName="user", PolicyName="proof")


def is_refused(attempt: Attempt, user: AwsClients, stage: Stage) -> bool:
    try:
        attempt(user, stage)
    except ClientError as error:
        return error.response["Error"]["Code"] in REFUSALS
    return False


def statements_of(who: str) -> list[AwsStatement]:
    return [one for policy in aws_policies(PLAN) if policy.who == who for one in policy.statements]


def tried(statement: AwsStatement) -> list[str]:
    return [action for action in statement.actions if not action.startswith(NOT_TRIED)]


@pytest.mark.parametrize("who", ["users", "runs"])
def test_each_statement_is_needed_and_all_are_enough(
    who: str, user: AwsClients, stage: Stage, granted: Callable[[list[AwsStatement]], None]
) -> None:
    statements = statements_of(who)
    granted(statements)
    actions = dict.fromkeys(action for one in statements for action in tried(one))
    assert [action for action in actions if is_refused(CALLS[action], user, stage)] == []
    for statement in statements:
        granted([one for one in statements if one is not statement])
        let_through = [action for action in tried(statement) if not is_refused(CALLS[action], user, stage)]
        assert let_through == [], statement.words
    assert [one.words for one in statements if not tried(one)] == (
        ["its own record at Systems Manager, whichever instance it is"] if who == "runs" else []
    )


@pytest.mark.parametrize("who", ["users", "runs"])
def test_statements_grant_nothing_outside_of_the_stack(
    who: str, user: AwsClients, stage: Stage, granted: Callable[[list[AwsStatement]], None]
) -> None:
    granted(statements_of(who))
    assert [what for what, attempt in OUTSIDE[who].items() if not is_refused(attempt, user, stage)] == []
