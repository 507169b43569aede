# SPDX-License-Identifier: Apache-2.0
"""The state of the local AWS survives a kill of the cloud, and is valid for AWS."""

import os
import signal
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import HTTPClientError

from localcloud import admin, control
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients, refused

IMAGE = "ami-0d11a1b2c3d4e5f60"
# moto itself has thousands of those.
OF_AWS = "/aws/service/global-infrastructure/regions/us-east-1"
CARDS = 4


def _network(aws: AwsClients) -> tuple[str, str]:
    ec2 = aws["ec2"]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=vpc)["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    return subnet, group


def _interfaces(subnet: str, group: str) -> list[dict[str, Any]]:
    return [
        {"NetworkCardIndex": card, "DeviceIndex": min(card, 1), "InterfaceType": "efa", "SubnetId": subnet,
         "Groups": [group], "DeleteOnTermination": True}
        for card in range(CARDS)
    ]  # fmt: skip


def _world(aws: AwsClients) -> dict[str, str]:
    """A resource of each service that stacks use."""
    s3 = aws["s3"]
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="small", Body=b"small", Metadata={"a": "b"})
    s3.put_object(Bucket="kept", Key="large", Body=b"0123456789" * 700_000)
    upload = s3.create_multipart_upload(Bucket="kept", Key="parts")["UploadId"]
    part = s3.upload_part(Bucket="kept", Key="parts", UploadId=upload, PartNumber=1, Body=b"part")["ETag"]
    aws["ecr"].create_repository(repositoryName="team/train", tags=[{"Key": "a", "Value": "b"}])
    aws["ssm"].put_parameter(Name="/team/image", Value=IMAGE, Type="String")
    aws["ssm"].add_tags_to_resource(
        ResourceType="Parameter", ResourceId="/team/image", Tags=[{"Key": "a", "Value": "b"}]
    )
    aws["secretsmanager"].create_secret(Name="key", SecretString="secret")
    aws["logs"].create_log_group(logGroupName="/runs")
    key = aws["kms"].create_key()["KeyMetadata"]["KeyId"]
    aws["ec2"].create_placement_group(GroupName="gaudi", Strategy="cluster")
    reservation = aws["ec2"].create_capacity_reservation(
        InstanceType="dl1.24xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=2,
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]["CapacityReservationId"]  # fmt: skip
    return {"upload": upload, "part": part, "key": key, "reservation": reservation}


def test_a_kill_loses_nothing_that_was_answered(cloud: Cloud) -> None:
    aws = AwsClients(cloud)
    made = _world(aws)
    before = aws["sts"].get_caller_identity()
    region = aws["ssm"].get_parameter(Name=OF_AWS)["Parameter"]["Value"]
    aws["ssm"].put_parameter(Name="/team/other", Value=region, Type="String")
    with closing(sqlite3.connect(cloud.home / "aws" / "state.sqlite3")) as state:
        sizes = state.execute("SELECT length(state) FROM backends WHERE service = 'ssm'").fetchall()
    assert sizes
    assert max(sizes) < (100_000,), "what moto brings is written again with every call"
    os.kill(cloud.pid, signal.SIGKILL)
    again = control.start_cloud(cloud.home)
    aws = AwsClients(again)
    assert aws["sts"].get_caller_identity()["UserId"] == before["UserId"]
    s3 = aws["s3"]
    assert s3.get_object(Bucket="kept", Key="small")["Metadata"] == {"a": "b"}
    assert len(s3.get_object(Bucket="kept", Key="large")["Body"].read()) == 7_000_000
    parts = {"Parts": [{"PartNumber": 1, "ETag": made["part"]}]}
    s3.complete_multipart_upload(Bucket="kept", Key="parts", UploadId=made["upload"], MultipartUpload=parts)
    assert s3.get_object(Bucket="kept", Key="parts")["Body"].read() == b"part"
    assert refused(s3.put_object, Bucket="kept", Key="small", Body=b"", IfNoneMatch="*")[0] == "PreconditionFailed"
    assert aws["ecr"].describe_repositories()["repositories"][0]["repositoryName"] == "team/train"
    assert aws["ssm"].get_parameter(Name="/team/image")["Parameter"]["Value"] == IMAGE
    assert aws["ssm"].get_parameter(Name=OF_AWS)["Parameter"]["Value"] == region
    assert aws["ssm"].list_tags_for_resource(ResourceType="Parameter", ResourceId="/team/image")["TagList"]
    assert aws["secretsmanager"].get_secret_value(SecretId="key")["SecretString"] == "secret"
    assert aws["logs"].describe_log_groups()["logGroups"][0]["logGroupName"] == "/runs"
    assert aws["kms"].describe_key(KeyId=made["key"])["KeyMetadata"]["Enabled"]
    assert aws["ec2"].describe_placement_groups(GroupNames=["gaudi"])["PlacementGroups"][0]["Strategy"] == "cluster"
    reserved = aws["ec2"].describe_capacity_reservations(CapacityReservationIds=[made["reservation"]])
    assert reserved["CapacityReservations"][0]["AvailableInstanceCount"] == 2
    s3.delete_object(Bucket="kept", Key="large")
    control.stop_cloud(again.home)
    files = again.home / "aws" / "objects"
    AwsClients(control.start_cloud(again.home))["s3"].list_buckets()
    assert all(file.stat().st_size < 1_000_000 for file in files.iterdir())


@pytest.fixture(scope="module")
def place(aws: AwsClients) -> tuple[str, str]:
    return _network(aws)


def _launch(aws: AwsClients, **more: Any) -> dict[str, Any]:
    words = {"MinCount": 1, "MaxCount": 1, "ImageId": IMAGE, "InstanceType": "dl1.24xlarge", **more}
    instance: dict[str, Any] = aws["ec2"].run_instances(**words)["Instances"][0]
    return instance


def test_only_some_zones_have_the_machines(aws: AwsClients) -> None:
    wanted = [{"Name": "instance-type", "Values": ["dl1.24xlarge"]}]
    for region, zones in (("us-east-1", {"us-east-1a", "us-east-1c"}), ("eu-west-1", set())):
        ec2 = AwsClients(aws.cloud, region=region)["ec2"]
        offers = ec2.describe_instance_type_offerings(LocationType="availability-zone", Filters=wanted)
        assert {row["Location"] for row in offers["InstanceTypeOfferings"]} == zones
    (kind,) = aws["ec2"].describe_instance_types(InstanceTypes=["dl1.24xlarge"])["InstanceTypes"]
    assert (kind["VCpuInfo"]["DefaultVCpus"], kind["MemoryInfo"]["SizeInMiB"]) == (96, 768 * 1024)
    assert kind["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"] == CARDS
    assert kind["InstanceStorageInfo"]["TotalSizeInGB"] == 4000


def test_all_fields_of_a_launch_template_take_effect(aws: AwsClients, place: tuple[str, str]) -> None:
    subnet, group = place
    ec2 = aws["ec2"]
    ec2.create_placement_group(GroupName="pair", Strategy="cluster")
    reservation = ec2.create_capacity_reservation(
        InstanceType="dl1.24xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=1,
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]["CapacityReservationId"]  # fmt: skip
    data = {
        "ImageId": IMAGE, "InstanceType": "dl1.24xlarge", "NetworkInterfaces": _interfaces(subnet, group),
        "Placement": {"GroupName": "pair"}, "InstanceInitiatedShutdownBehavior": "stop",
        "MetadataOptions": {"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reservation}},
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 500, "Encrypted": True}}],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "stack", "Value": "ours"}]}],
    }  # fmt: skip
    ec2.create_launch_template(LaunchTemplateName="gaudi", LaunchTemplateData=data)
    template = {"LaunchTemplate": {"LaunchTemplateName": "gaudi", "Version": "$Latest"}}
    words = {"MinCount": 1, "MaxCount": 1, "ClientToken": "once", **template}
    name = ec2.run_instances(**words)["Instances"][0]["InstanceId"]
    try:
        assert ec2.run_instances(**words)["Instances"][0]["InstanceId"] == name
        (found,) = ec2.describe_instances(InstanceIds=[name])["Reservations"][0]["Instances"]
        cards = [(one["Attachment"]["NetworkCardIndex"], one["Attachment"]["DeviceIndex"], one["InterfaceType"])
                 for one in found["NetworkInterfaces"]]  # fmt: skip
        assert sorted(cards) == [(card, min(card, 1), "efa") for card in range(CARDS)]
        assert found["Placement"]["GroupName"] == "pair"
        assert found["CapacityReservationId"] == reservation
        assert found["MetadataOptions"]["HttpTokens"] == "required"
        assert "PublicIpAddress" not in found
        (disk,) = ec2.describe_volumes(VolumeIds=[found["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]])["Volumes"]
        assert (disk["Size"], disk["Encrypted"]) == (500, True)
        assert refused(ec2.run_instances, MinCount=1, MaxCount=1, **template)[0] == "ReservationCapacityExceeded"
        assert refused(ec2.delete_placement_group, GroupName="pair")[0] == "InvalidPlacementGroup.InUse"
    finally:
        ec2.terminate_instances(InstanceIds=[name])
    ec2.delete_placement_group(GroupName="pair")


def test_invalid_launches_are_refused_with_aws_error_codes(aws: AwsClients, place: tuple[str, str]) -> None:
    subnet, group = place
    ec2 = aws["ec2"]
    vpc = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
    elsewhere = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.2.0/24", AvailabilityZone="us-east-1b")["Subnet"][
        "SubnetId"
    ]
    cards = _interfaces(subnet, group)

    def one(**more: Any) -> list[dict[str, Any]]:
        return [{"DeviceIndex": 0, "SubnetId": subnet, **more}]

    attempts: list[tuple[str, dict[str, Any]]] = [
        ("InvalidAMIID.NotFound", {"ImageId": "ami-00000000000000000"}),
        ("InvalidInstanceType", {"InstanceType": "dl1.48xlarge"}),
        ("Unsupported", {"SubnetId": elsewhere}),
        ("InvalidParameterValue", {"NetworkInterfaces": one(NetworkCardIndex=4)}),
        ("AttachmentLimitExceeded", {"NetworkInterfaces": [*cards, {**cards[3], "DeviceIndex": 2}]}),
        ("InvalidParameterValue", {"NetworkInterfaces": [*cards[:2], {**cards[1], "DeviceIndex": 2}]}),
        ("InvalidParameterValue", {"NetworkInterfaces": [*cards[:2], cards[1]]}),
        ("InvalidParameterCombination", {"NetworkInterfaces": [{**cards[0], "AssociatePublicIpAddress": True},
                                                               cards[1]]}),
        ("InvalidParameterCombination", {"NetworkInterfaces": [cards[1]]}),
        ("InvalidParameterCombination", {"NetworkInterfaces": cards, "SubnetId": subnet}),
        ("InvalidParameterCombination", {"InstanceType": "t3.micro", "NetworkInterfaces": one(InterfaceType="efa")}),
        ("InvalidPlacementGroup.Unknown", {"SubnetId": subnet, "Placement": {"GroupName": "none"}}),
        ("InvalidKeyPair.NotFound", {"SubnetId": subnet, "KeyName": "none"}),
        ("VcpuLimitExceeded", {"SubnetId": subnet, "MinCount": 17, "MaxCount": 17}),
    ]  # fmt: skip
    for number, (code, words) in enumerate(attempts):
        assert refused(_launch, aws, **words)[0] == code, number


def test_injected_faults_have_aws_error_codes(aws: AwsClients, shared_cloud: Cloud, place: tuple[str, str]) -> None:
    subnet, _ = place
    rows: list[tuple[str, dict[str, Any], Any, str]] = [
        ("no-capacity", {"shape": "dl1.*"}, lambda: _launch(aws, SubnetId=subnet), "InsufficientInstanceCapacity"),
        ("limit", {"limit": "L-6E869C2A", "value": 95}, lambda: _launch(aws, SubnetId=subnet), "VcpuLimitExceeded"),
        ("limit", {"limit": "dl1.24xlarge", "value": 0}, lambda: _launch(aws, SubnetId=subnet), "Unsupported"),
        ("status", {"status": 429, "operations": "ssm.*"}, lambda: aws["ssm"].list_commands(), "ThrottlingException"),
        ("status", {"status": 429, "operations": "s3.*"}, lambda: aws["s3"].list_buckets(), "SlowDown"),
        ("status", {"status": 503, "operations": "ec2.*"}, lambda: aws["ec2"].describe_vpcs(), "Unavailable"),
        ("status", {"status": 500, "operations": "iam.*"}, lambda: aws["iam"].list_users(), "InternalFailure"),
    ]  # fmt: skip
    for kind, settings, call, code in rows:
        admin.add_fault(shared_cloud, kind, **settings)
        try:
            assert refused(call)[0] == code
        finally:
            admin.clear_faults(shared_cloud)
        if kind == "status":
            call()
    admin.add_fault(shared_cloud, "drop", operations="ec2.DescribeVpcs", times=1)
    with pytest.raises(HTTPClientError):
        aws["ec2"].describe_vpcs()
    aws["ec2"].describe_vpcs()
    admin.clear_faults(shared_cloud)
    quota = aws["service-quotas"].get_service_quota(ServiceCode="ec2", QuotaCode="L-6E869C2A")["Quota"]
    assert quota["Value"] == 1536


def test_a_call_with_a_lost_response_takes_effect_once(aws: AwsClients, shared_cloud: Cloud) -> None:
    """Two starts use the same number. The one whose response was lost finds its own object there."""
    aws["s3"].create_bucket(Bucket="queue")
    admin.add_fault(shared_cloud, "lost-answer", operations="s3.PutObject", times=1)
    try:
        with pytest.raises(HTTPClientError):
            aws["s3"].put_object(Bucket="queue", Key="1", Body=b"", IfNoneMatch="*")
    finally:
        admin.clear_faults(shared_cloud)
    assert refused(aws["s3"].put_object, Bucket="queue", Key="1", Body=b"", IfNoneMatch="*")[0] == "PreconditionFailed"


def test_a_put_writes_only_the_row_of_its_object(cloud: Cloud) -> None:
    """Includes a copy, versions, a delete marker, a multiple deletion, and a deleted bucket."""
    s3, file = AwsClients(cloud)["s3"], cloud.home / "aws" / "state.sqlite3"

    def rows() -> dict[str, int]:
        with closing(sqlite3.connect(file)) as state:
            return dict(state.execute("SELECT name, length(state) FROM objects").fetchall())

    def backend() -> int:
        with closing(sqlite3.connect(file)) as state:
            (size,) = state.execute("SELECT length(state) FROM backends WHERE service = 's3'").fetchone()
        return int(size)

    s3.create_bucket(Bucket="rows")
    empty = backend()
    for number in range(20):
        s3.put_object(Bucket="rows", Key=f"many/{number}", Body=b"x")
    assert len(rows()) == 20
    assert backend() == empty, "the row of S3 itself does not grow with its objects"
    s3.put_bucket_versioning(Bucket="rows", VersioningConfiguration={"Status": "Enabled"})
    s3.copy_object(Bucket="rows", Key="copy", CopySource="rows/many/0")
    s3.put_object(Bucket="rows", Key="copy", Body=b"newer")
    s3.delete_object(Bucket="rows", Key="many/1")
    s3.put_object_tagging(Bucket="rows", Key="many/2", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    versions = s3.list_object_versions(Bucket="rows", Prefix="many/3")["Versions"]
    s3.delete_objects(
        Bucket="rows", Delete={"Objects": [{"Key": "many/3", "VersionId": row["VersionId"]} for row in versions]}
    )
    assert set(rows()) == {"copy", *(f"many/{number}" for number in range(20) if number != 3)}
    seen = s3.list_object_versions(Bucket="rows")
    os.kill(cloud.pid, signal.SIGKILL)
    again = AwsClients(control.start_cloud(cloud.home))["s3"]
    after = again.list_object_versions(Bucket="rows")
    for kind in ("Versions", "DeleteMarkers"):
        assert [(row["Key"], row["VersionId"]) for row in after[kind]] == [
            (row["Key"], row["VersionId"]) for row in seen[kind]
        ]
    assert again.get_object(Bucket="rows", Key="copy")["Body"].read() == b"newer"
    assert again.get_object_tagging(Bucket="rows", Key="many/2")["TagSet"] == [{"Key": "a", "Value": "b"}]
    for row in (*after["Versions"], *after["DeleteMarkers"]):
        again.delete_object(Bucket="rows", Key=row["Key"], VersionId=row["VersionId"])
    again.delete_bucket(Bucket="rows")
    assert rows() == {}
