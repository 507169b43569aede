# SPDX-License-Identifier: Apache-2.0
"""The local AWS checks each call against the policies in force: actions, resources, conditions, passed roles."""

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from localcloud import admin
from localcloud.aws.metadata import Metadata
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients, refused
from tests.support.waiting import eventually

ACCOUNT = "123456789012"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"},
        {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/user"}, "Action": "sts:AssumeRole"},
    ],
}


@pytest.fixture(scope="module")
def user(shared_cloud: Cloud) -> AwsClients:
    return AwsClients(shared_cloud, "user")


@pytest.fixture(scope="module")
def stage(aws: AwsClients) -> Mapping[str, str]:
    """The resources of the calls: a bucket, a secret, two instances of two stacks, a role that trusts the user."""
    aws["s3"].create_bucket(Bucket="team")
    for key in ("mine/a", "mine/b", "others/a"):
        aws["s3"].put_object(Bucket="team", Key=key, Body=b"content")
    secret = aws["secretsmanager"].create_secret(Name="team-key", SecretString="secret")["ARN"]
    aws["logs"].create_log_group(logGroupName="/team/runs")
    aws["logs"].create_log_stream(logGroupName="/team/runs", logStreamName="node")
    ec2 = aws["ec2"]
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    groups = {
        stack: ec2.create_security_group(GroupName=stack, Description=stack, VpcId=vpc, TagSpecifications=[
            {"ResourceType": "security-group", "Tags": [{"Key": "stack", "Value": stack}]}
        ])["GroupId"]
        for stack in ("ours", "theirs")
    }  # fmt: skip
    iam = aws["iam"]
    iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=json.dumps(TRUST))
    iam.create_role(
        RoleName="powerful", AssumeRolePolicyDocument=json.dumps(TRUST | {"Statement": TRUST["Statement"][:1]})
    )
    for name in ("nodes", "powerful"):
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    return {"secret": secret, "vpc": vpc, "subnet": subnet, **groups}


@pytest.fixture
def granted(aws: AwsClients) -> Iterator[Callable[..., None]]:
    """Puts statements in force for the user's group, until the test ends."""

    def put(*statements: Mapping[str, Any]) -> None:
        rows = [{"Effect": "Allow", "Resource": "*", **statement} for statement in statements]
        document = json.dumps({"Version": "2012-10-17", "Statement": rows})
        aws["iam"].put_group_policy(GroupName="scientists", PolicyName="test", PolicyDocument=document)

    yield put
    for name in aws["iam"].list_group_policies(GroupName="scientists")["PolicyNames"]:
        aws["iam"].delete_group_policy(GroupName="scientists", PolicyName=name)


def test_a_new_user_may_do_nothing_and_learns_what_is_missing(user: AwsClients, stage: Mapping[str, str]) -> None:
    denied = [
        refused(user["s3"].list_buckets), refused(user["ec2"].describe_vpcs), refused(user["iam"].list_users),
        refused(user["ssm"].describe_parameters), refused(user["secretsmanager"].get_secret_value, SecretId="team-key"),
    ]  # fmt: skip
    assert [code for code, _ in denied] == [
        "AccessDenied", "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AccessDeniedException",
    ]  # fmt: skip
    assert all(f"arn:aws:iam::{ACCOUNT}:user/user is not authorized to perform" in text for _, text in denied)
    assert f"secretsmanager:GetSecretValue on resource: {stage['secret']}" in denied[-1][1]
    user["sts"].get_caller_identity()


def test_a_statement_applies_to_its_resources_only(
    user: AwsClients, stage: Mapping[str, str], granted: Callable[..., None]
) -> None:
    s3 = user["s3"]
    granted(
        {"Action": ["s3:Get*", "s3:PutObject", "s3:DeleteObject"], "Resource": "arn:aws:s3:::team/mine/*"},
        {"Action": "s3:ListBucket", "Resource": "arn:aws:s3:::team",
         "Condition": {"StringLike": {"s3:prefix": ["mine/*"]}}},
        {"Action": "logs:PutLogEvents", "Resource": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/team/runs:*"},
        {"Action": "secretsmanager:GetSecretValue",
         "Resource": f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:team-*"},
    )  # fmt: skip
    s3.get_object(Bucket="team", Key="mine/a")
    s3.head_object(Bucket="team", Key="mine/a")
    s3.put_object(Bucket="team", Key="mine/c", Body=b"", IfNoneMatch="*")
    s3.list_objects_v2(Bucket="team", Prefix="mine/")
    upload = s3.create_multipart_upload(Bucket="team", Key="mine/d")["UploadId"]
    part = s3.upload_part(Bucket="team", Key="mine/d", UploadId=upload, PartNumber=1, Body=b"part")
    s3.complete_multipart_upload(Bucket="team", Key="mine/d", UploadId=upload,
                                 MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})  # fmt: skip
    s3.delete_objects(Bucket="team", Delete={"Objects": [{"Key": "mine/c"}, {"Key": "mine/d"}]})
    events = [{"timestamp": int(time.time() * 1000), "message": "step"}]
    user["logs"].put_log_events(logGroupName="/team/runs", logStreamName="node", logEvents=events)
    user["secretsmanager"].get_secret_value(SecretId="team-key")
    attempts: list[Callable[[], Any]] = [
        lambda: s3.get_object(Bucket="team", Key="others/a"),
        lambda: s3.get_object(Bucket="team", Key="mine"),
        lambda: s3.list_objects_v2(Bucket="team", Prefix="others/"),
        lambda: s3.list_objects_v2(Bucket="team"),
        lambda: s3.delete_objects(Bucket="team", Delete={"Objects": [{"Key": "mine/a"}, {"Key": "others/a"}]}),
        lambda: s3.copy_object(Bucket="team", Key="mine/copy", CopySource="team/others/a"),
        lambda: s3.put_object(Bucket="team", Key="mine/x", Body=b"", Tagging="a=b"),
        lambda: s3.put_bucket_policy(Bucket="team", Policy="{}"),
        lambda: s3.list_buckets(),
        lambda: user["secretsmanager"].delete_secret(SecretId="team-key"),
    ]
    for number, attempt in enumerate(attempts):
        assert refused(attempt)[0] in ("AccessDenied", "AccessDeniedException"), number
    assert s3.get_object(Bucket="team", Key="mine/a")["Body"].read() == b"content"


@pytest.mark.usefixtures("stage")
def test_an_explicit_deny_overrides_every_allow(user: AwsClients, granted: Callable[..., None]) -> None:
    granted({"Action": "*"}, {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::team/mine/b"})
    user["s3"].delete_object(Bucket="team", Key="mine/never")
    code, message = refused(user["s3"].delete_object, Bucket="team", Key="mine/b")
    assert (code, "explicit deny" in message) == ("AccessDenied", True)


def test_conditions_on_tags_are_evaluated(
    user: AwsClients, stage: Mapping[str, str], granted: Callable[..., None]
) -> None:
    ours = {"Condition": {"StringEquals": {"aws:ResourceTag/stack": "ours"}}}
    made = {"Condition": {"StringEquals": {"aws:RequestTag/stack": "ours"}}}
    on_creation = {
        "Condition": {"StringEquals": {"aws:RequestTag/stack": "ours"}, "Null": {"ec2:CreateAction": "false"}}
    }
    everything = f"arn:aws:ec2:us-east-1:{ACCOUNT}:*"
    granted(
        {"Action": "ec2:DeleteSecurityGroup", "Resource": everything, **ours},
        {"Action": "ec2:CreateVpc", "Resource": everything, **made},
        {"Action": "ec2:CreateTags", "Resource": everything, **on_creation},
    )
    ec2 = user["ec2"]
    assert refused(ec2.delete_security_group, GroupId=stage["theirs"])[0] == "UnauthorizedOperation"
    assert refused(ec2.create_vpc, CidrBlock="10.8.0.0/16")[0] == "UnauthorizedOperation"
    tags = [{"ResourceType": "vpc", "Tags": [{"Key": "stack", "Value": "ours"}]}]
    vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16", TagSpecifications=tags)["Vpc"]["VpcId"]
    late = refused(ec2.create_tags, Resources=[stage["theirs"]], Tags=[{"Key": "stack", "Value": "ours"}])
    assert late[0] == "UnauthorizedOperation"
    assert vpc


def test_access_is_checked_for_the_resource_that_the_call_changes(
    aws: AwsClients, user: AwsClients, stage: Mapping[str, str], granted: Callable[..., None]
) -> None:
    """Names that two parsers could understand differently, and parameters that only mislead the access check."""
    ours = {"Condition": {"StringEquals": {"aws:ResourceTag/stack": "ours"}}}
    of_account = f"us-east-1:{ACCOUNT}"
    granted(
        {"Action": "s3:*", "Resource": ["arn:aws:s3:::mine/*", "arn:aws:s3:::team/mine/*"]},
        {"Action": "secretsmanager:*", "Resource": f"arn:aws:secretsmanager:{of_account}:secret:mine-*"},
        {"Action": "secretsmanager:BatchGetSecretValue"}, {"Action": "tag:*"},
        {"Action": "ec2:*", "Resource": f"arn:aws:ec2:{of_account}:*", **ours},
        {"Action": "sts:AssumeRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/mine/*"},
    )  # fmt: skip
    s3, ec2, secrets = user["s3"], user["ec2"], user["secretsmanager"]
    aws["s3"].put_object(Bucket="team", Key="others/a;b", Body=b"content")
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "stack", "Value": "ours"}]}]
    volume = aws["ec2"].create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=tags)["VolumeId"]
    snapshot = aws["ec2"].create_snapshot(VolumeId=volume)["SnapshotId"]
    group = f"arn:aws:ec2:{of_account}:security-group/{stage['theirs']}"

    def with_decoy(params: Mapping[str, Any], **_: Any) -> None:
        params["body"]["VolumeId"] = volume

    ec2.meta.events.register("before-call.ec2.DeleteSnapshot", with_decoy)
    attempts: list[Callable[[], Any]] = [
        *(
            lambda source=source: s3.copy_object(Bucket="team", Key="mine/copy", CopySource=source)
            for source in ("//mine/team/others/a", "x:team/others/a", "team/others/a#", "team/others/a;b",
                           "team/others/a?versionId=null")
        ),
        lambda: secrets.get_secret_value(
            SecretId=f"arn:aws:secretsmanager:{of_account}:secret:mine-x:team-key"
        ),
        lambda: secrets.batch_get_secret_value(SecretIdList=["team-key"]),
        lambda: user["resourcegroupstaggingapi"].tag_resources(ResourceARNList=[group], Tags={"stack": "ours"}),
        lambda: ec2.delete_security_group(GroupId=stage["ours"], GroupName="theirs"),
        lambda: ec2.authorize_security_group_ingress(
            GroupId=stage["ours"], GroupName=stage["theirs"], IpProtocol="-1"
        ),
        lambda: ec2.delete_snapshot(SnapshotId=snapshot),
        lambda: user["sts"].assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/mine/nodes", RoleSessionName="me"),
    ]  # fmt: skip
    codes = [refused(attempt)[0] for attempt in attempts]
    assert set(codes) <= {
        "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "InvalidRequest", "UnknownOperationException",
    }, codes  # fmt: skip
    assert refused(aws["s3"].head_object, Bucket="team", Key="mine/copy")[0] == "404"
    s3.copy_object(Bucket="team", Key="mine/copy", CopySource="team/mine/a")
    assert refused(ec2.delete_security_group, GroupId=stage["ours"], GroupName="ours", DryRun=True)[0] == (
        "DryRunOperation"
    )


def test_a_condition_with_an_unknown_key_never_allows_and_always_denies(
    user: AwsClients, granted: Callable[..., None]
) -> None:
    strange = {"Condition": {"StringEquals": {"ec2:NoKeyOfOurs": "x"}}}
    granted({"Action": "s3:ListAllMyBuckets", **strange})
    assert refused(user["s3"].list_buckets)[0] == "AccessDenied"
    granted({"Action": "s3:ListAllMyBuckets"}, {"Effect": "Deny", "Action": "s3:ListAllMyBuckets", **strange})
    assert refused(user["s3"].list_buckets)[0] == "AccessDenied"
    granted({"Action": "s3:ListAllMyBuckets", "Condition": {"Bool": {"aws:SecureTransport": "true"}}})
    user["s3"].list_buckets()


def test_passing_a_role_needs_iam_pass_role(
    user: AwsClients, stage: Mapping[str, str], granted: Callable[..., None]
) -> None:
    passing = {
        "Action": "iam:PassRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/nodes",
        "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    }  # fmt: skip
    granted({"Action": "ec2:*"}, passing)
    launch = {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-0d11a1b2c3d4e5f60", "InstanceType": "dl1.24xlarge",
              "SubnetId": stage["subnet"], "DryRun": True}  # fmt: skip
    assert refused(user["ec2"].run_instances, **launch, IamInstanceProfile={"Name": "nodes"})[0] == "DryRunOperation"
    code, message = refused(user["ec2"].run_instances, **launch, IamInstanceProfile={"Name": "powerful"})
    assert (code, f"iam:PassRole on resource: arn:aws:iam::{ACCOUNT}:role/powerful" in message) == (
        "UnauthorizedOperation", True,
    )  # fmt: skip
    data = {
        "ImageId": "ami-0d11a1b2c3d4e5f60",
        "InstanceType": "dl1.24xlarge",
        "IamInstanceProfile": {"Name": "powerful"},
    }
    user["ec2"].create_launch_template(LaunchTemplateName="trojan", LaunchTemplateData=data)
    by_template = {"MinCount": 1, "MaxCount": 1, "LaunchTemplate": {"LaunchTemplateName": "trojan"}, "DryRun": True}
    assert refused(user["ec2"].run_instances, **by_template)[0] == "UnauthorizedOperation"
    assert refused(user["iam"].add_role_to_instance_profile, InstanceProfileName="nodes", RoleName="powerful")[0] == (
        "AccessDenied"
    )


@pytest.mark.usefixtures("stage")
def test_a_bucket_policy_grants_and_denies(aws: AwsClients, user: AwsClients, granted: Callable[..., None]) -> None:
    bucket, objects = "arn:aws:s3:::team", "arn:aws:s3:::team/*"
    statements = [
        {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/user"}, "Action": "s3:GetObject",
         "Resource": "arn:aws:s3:::team/others/*"},
        {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": [bucket, objects],
         "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
        {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::team/frozen/*"},
    ]  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    aws["s3"].put_bucket_policy(Bucket="team", Policy=policy)
    try:
        user["s3"].get_object(Bucket="team", Key="others/a")
        assert refused(user["s3"].get_object, Bucket="team", Key="mine/a")[0] == "AccessDenied"
        assert refused(aws["s3"].put_object, Bucket="team", Key="frozen/a", Body=b"")[0] == "AccessDenied"
    finally:
        aws["s3"].delete_bucket_policy(Bucket="team")


def test_a_role_is_assumed_only_by_principals_that_it_trusts(
    aws: AwsClients, user: AwsClients, stage: Mapping[str, str], granted: Callable[..., None]
) -> None:
    document = {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::team/mine/*"}]}  # fmt: skip
    aws["iam"].put_role_policy(RoleName="nodes", PolicyName="read", PolicyDocument=json.dumps(document))
    granted({"Action": "sts:AssumeRole"})
    taken = user["sts"].assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/nodes", RoleSessionName="me")["Credentials"]
    keys = (taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"])
    session = user.with_keys(*keys)
    assert session["sts"].get_caller_identity()["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/nodes/me"
    session["s3"].get_object(Bucket="team", Key="mine/a")
    assert refused(session["s3"].get_object, Bucket="team", Key="others/a")[0] == "AccessDenied"
    assert refused(user.with_keys(keys[0], keys[1], "forged")["s3"].list_buckets)[0] == "InvalidToken"
    assert refused(user.with_keys(keys[0], keys[1])["s3"].list_buckets)[0] == "InvalidAccessKeyId", (
        "it is known only with its token"
    )
    powerful = f"arn:aws:iam::{ACCOUNT}:role/powerful"
    assert refused(user["sts"].assume_role, RoleArn=powerful, RoleSessionName="me")[0] == "AccessDenied"


@pytest.mark.usefixtures("stage")
def test_decisions_are_recorded_with_what_allowed_them(
    user: AwsClients, shared_cloud: Cloud, granted: Callable[..., None]
) -> None:
    granted({"Sid": "Read", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::team/mine/*"})
    before = admin.list_calls(shared_cloud, of="aws")
    seen = max((row["id"] for row in before), default=0)
    for _ in range(3):
        user["s3"].get_object(Bucket="team", Key="mine/a")
    refused(user["s3"].get_object, Bucket="team", Key="others/a")
    allowed, denied = admin.list_calls(shared_cloud, seen, of="aws")
    assert (allowed["operation"], allowed["permissions"], allowed["allowed"], allowed["missing"]) == (
        "s3.GetObject", ["s3:GetObject"], True, [],
    )  # fmt: skip
    assert allowed["times"] >= 3
    assert allowed["target"]["resource"] == "arn:aws:s3:::team/mine/a"
    assert json.loads(allowed["by"][0]["statement"])["Sid"] == "Read"
    assert (denied["allowed"], denied["missing"], denied["by"]) == (False, ["s3:GetObject"], [])


def _ask(cloud: Cloud, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(cloud.endpoint).netloc, timeout=60)
    try:
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _goes_by_the_endpoint(aws: AwsClients, node: AwsClients, subnet: str) -> None:
    """An instance may do what its role allows only if the policy of the VPC endpoint allows it, too."""
    everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    named = {"PolicyName": "s3", "RoleName": "nodes"}
    aws["iam"].put_role_policy(**named, PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [everything]}))
    vpc = aws["ec2"].describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
    reads = json.dumps({"Version": "2012-10-17", "Statement": [{**everything, "Action": "s3:List*", "Principal": "*"}]})
    made = aws["ec2"].create_vpc_endpoint(
        VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3", PolicyDocument=reads
    )["VpcEndpoint"]["VpcEndpointId"]  # fmt: skip
    try:
        node["s3"].list_buckets()
        code, why = refused(node["s3"].create_bucket, Bucket="somebody-elses")
        assert (code, "no VPC endpoint policy allows the s3:CreateBucket action" in why) == ("AccessDenied", True)
        aws["s3"].create_bucket(Bucket="from-outside")
        aws["s3"].delete_bucket(Bucket="from-outside")
    finally:
        aws["ec2"].delete_vpc_endpoints(VpcEndpointIds=[made])
        aws["iam"].delete_role_policy(**named)


def test_an_instance_acts_as_its_role(aws: AwsClients, stage: Mapping[str, str], shared_cloud: Cloud) -> None:
    ec2 = aws["ec2"]
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "trainyard-node", "Value": "resnet/main"}]}]
    launch = {
        "MinCount": 1, "MaxCount": 1, "ImageId": "ami-0d11a1b2c3d4e5f60", "InstanceType": "dl1.24xlarge",
        "SubnetId": stage["subnet"], "IamInstanceProfile": {"Name": "nodes"}, "TagSpecifications": tags,
        "MetadataOptions": {"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
    }  # fmt: skip
    spot = {"InstanceMarketOptions": {"MarketType": "spot"}}
    mine, other = (ec2.run_instances(**launch, **more)["Instances"][0]["InstanceId"] for more in ({}, spot))
    try:
        base = Metadata(shared_cloud.home, lambda role: True, lambda: 3600.0).path_of(mine)
        theirs = Metadata(shared_cloud.home, lambda role: True, lambda: 3600.0).path_of(other)
        lasts = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        status, token = _ask(shared_cloud, "PUT", f"{base}/latest/api/token", lasts)
        carried = {"X-aws-ec2-metadata-token": token}
        assert status == 200
        its = {"X-aws-ec2-metadata-token": _ask(shared_cloud, "PUT", f"{theirs}/latest/api/token", lasts)[1]}
        action = "latest/meta-data/spot/instance-action"
        assert _ask(shared_cloud, "GET", f"{theirs}/{action}", its)[0] == 404
        admin.add_fault(shared_cloud, "spot", shape="dl1.*")
        assert json.loads(_ask(shared_cloud, "GET", f"{theirs}/{action}", its)[1])["action"] == "terminate"
        assert _ask(shared_cloud, "GET", f"{base}/{action}", carried)[0] == 404, "it is no spot instance"

        def read(path: str) -> str:
            status, text = _ask(shared_cloud, "GET", f"{base}/latest/meta-data/{path}", carried)
            assert status == 200, path
            return text

        assert read("instance-id") == mine
        assert read("placement/region") == "us-east-1"
        assert read("placement/availability-zone") == "us-east-1a"
        assert read("tags/instance/trainyard-node") == "resnet/main"
        assert read("iam/security-credentials/") == "nodes"
        profile = aws["iam"].get_instance_profile(InstanceProfileName="nodes")["InstanceProfile"]["InstanceProfileId"]
        (found,) = ec2.describe_instances(InstanceIds=[mine])["Reservations"][0]["Instances"]
        assert profile.startswith("AIPA")
        assert json.loads(read("iam/info"))["InstanceProfileId"] == found["IamInstanceProfile"]["Id"] == profile
        keys = json.loads(read("iam/security-credentials/nodes"))
        assert keys == json.loads(read("iam/security-credentials/nodes"))
        node = aws.with_keys(keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"])
        assert node["sts"].get_caller_identity()["Arn"].endswith(f"assumed-role/nodes/{mine}")
        assert refused(node["s3"].list_buckets)[0] == "AccessDenied"
        _goes_by_the_endpoint(aws, node, stage["subnet"])
        admin.add_fault(shared_cloud, "token", seconds=2)
        short = json.loads(read("iam/security-credentials/nodes"))
        assert short["AccessKeyId"] != keys["AccessKeyId"], "credentials that last too long are replaced"
        late = aws.with_keys(short["AccessKeyId"], short["SecretAccessKey"], short["Token"])["s3"]
        eventually(lambda: refused(late.list_buckets)[0], lambda code: code == "ExpiredToken")
        for path, headers in (
            (f"{base}/latest/meta-data/instance-id", {}), (f"{theirs}/latest/meta-data/instance-id", carried),
            (f"{base}/latest/meta-data/instance-id", {"X-aws-ec2-metadata-token": "forged"}),
        ):  # fmt: skip
            assert _ask(shared_cloud, "GET", path, headers)[0] == 401
        assert _ask(shared_cloud, "GET", f"{base[:-1]}x/latest/meta-data/instance-id", carried)[0] == 404
    finally:
        admin.clear_faults(shared_cloud)
        ec2.terminate_instances(InstanceIds=[mine, other])
    assert _ask(shared_cloud, "GET", f"{base}/latest/meta-data/instance-id", carried)[0] == 404
