# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for existing access: who gets it in the local account, and that it is removed with the last stack."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import yaml
from botocore.exceptions import ClientError

from components.aws.local.stacks import AwsLocalPlatform
from components.aws.local.stand_ins import StandIns
from components.aws.plan import AwsDl1Plan, aws_dl1_plan
from components.plan.build import plan_file
from components.platform.local import LocalFile
from localcloud.aws.account import ACCOUNT
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.examples import STACKS, stack_file
from tests.support.programs import require_program
from trainyard.local.localize import localize_config

NAME = "aws-dl1-existing-vpc"
LOCAL = AwsLocalPlatform()
TRUST = {"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}  # fmt: skip
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}


def stood_in(cloud: Cloud) -> LocalFile:
    """The local stack file, as `up --local` makes it before it starts Pulumi."""
    require_program("ssh-keygen")
    config, known = yaml.safe_load(stack_file(NAME).read_text())["config"], written()
    return localize_config(config, known, lambda file: LOCAL.stand_in(file, known, cloud, print), STACKS)


def written() -> AwsDl1Plan:
    return aws_dl1_plan(plan_file(stack_file(NAME), print))


def inline(of: AwsClients, kind: str, name: str) -> list[str]:
    """The names of a group's or role's inline policies."""
    answer = getattr(of["iam"], f"list_{kind}_policies")(**{f"{kind.capitalize()}Name": name})
    return list(answer["PolicyNames"])


def test_an_existing_group_of_the_local_account_gets_the_stand_in_policies(
    aws: AwsClients, shared_cloud: Cloud
) -> None:
    """`scientists` exists in every local account, so it needs no stand-in."""
    file, known, person = stood_in(shared_cloud), written(), AwsClients(shared_cloud, "user")
    assert "policies exist elsewhere: here the stack gets the least access that it needs" in file.remarks
    assert not [one for one in file.remarks if "waits" in one], "runs have access here, so `up` waits as it is written"
    assert inline(aws, "group", "scientists")
    assert inline(aws, "role", known.access.runs_role)
    person["s3"].put_object(Bucket=known.bucket.name, Key="data/a", Body=b"a")
    assert person["s3"].list_objects_v2(Bucket=known.bucket.name)["KeyCount"] == 1
    person["ec2"].describe_instances()
    with pytest.raises(ClientError, match=r"AccessDenied|not authorized"):
        person["iam"].list_roles()
    stood_in(shared_cloud)
    LOCAL.remove_stand_ins(shared_cloud, print, with_data=False)
    assert aws["s3"].get_object(Bucket=known.bucket.name, Key="data/a")["Body"].read() == b"a"
    LOCAL.remove_stand_ins(shared_cloud, print, with_data=True)
    with pytest.raises(ClientError, match="404"):
        aws["s3"].head_bucket(Bucket=known.bucket.name)
    assert not inline(aws, "group", "scientists")
    with pytest.raises(ClientError, match=r"UnauthorizedOperation|not authorized"):
        person["ec2"].describe_instances()


def test_an_existing_local_role_keeps_its_own_policies(aws: AwsClients, shared_cloud: Cloud) -> None:
    role = written().access.runs_role
    aws["iam"].create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(TRUST))
    assert any("its access is made elsewhere" in one for one in stood_in(shared_cloud).remarks)
    assert not inline(aws, "role", role)
    LOCAL.remove_stand_ins(shared_cloud, print, with_data=True)
    assert aws["iam"].get_role(RoleName=role)
    aws["iam"].delete_role(RoleName=role)


def test_a_capacity_block_and_images_are_stood_in_for(aws: AwsClients, shared_cloud: Cloud, tmp_path: Path) -> None:
    require_program("ssh-keygen")
    file = tmp_path / "Pulumi.block.yaml"
    whole = yaml.safe_load(stack_file("aws-dl1-resnet").read_text())
    block = {"market": "capacity-block", "reservation": "cr-0c0a1b2c3d4e5f603"}
    jobs = {
        name: {
            "framework": "pytorch", "image": "${registry}:1.4", "shape": "p5en.48xlarge", "command": "train.py",
            "roles": {"main": 1}, "cluster": {"ami": image, **block}, "runs": {"base": {}},
        } for name, image in {"own": "ami-0123456789abcdef0", "public": "nvidia"}.items()
    }  # fmt: skip
    whole["config"]["trainyard:jobs"] = jobs
    file.write_text(yaml.safe_dump(whole))
    known = aws_dl1_plan(plan_file(file, print))
    try:
        made = localize_config(whole["config"], known, lambda made: LOCAL.stand_in(made, known, shared_cloud, print),
                               STACKS)  # fmt: skip
        clusters = {name: job["cluster"] for name, job in made.config["trainyard:jobs"].items()}
        (reservation,) = {cluster["reservation"] for cluster in clusters.values()}
        found = aws["ec2"].describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"]
        assert [(row["ReservationType"], row["AvailabilityZone"], row["AvailableInstanceCount"]) for row in found] == [
            ("capacity-block", "us-east-1a", 64)
        ]
        assert clusters["public"]["ami"] == "nvidia", "its public parameter is there"
        assert aws["ec2"].describe_images(ImageIds=[clusters["own"]["ami"]])["Images"]
        assert not any("parameter" in remark for remark in made.remarks)
    finally:
        LOCAL.remove_stand_ins(shared_cloud, print, with_data=True)


def test_each_kind_of_stand_in_is_made_once_found_again_and_removed(aws: AwsClients, shared_cloud: Cloud) -> None:
    role, boundary = "elsewhere-nodes", "arn:aws:iam::210987654321:policy/limits/boundary"
    made = StandIns(shared_cloud, print, "eu-west-1")
    vpc, _ = made.one("vpc", "vpc-0c0a1b2c3d4e5f607")
    names = {
        "subnet": "subnet-0c0a1b2c3d4e5f607", "security group": "sg-0c0a1b2c3d4e5f607",
        "route table": "rtb-0c0a1b2c3d4e5f607", "bucket": "elsewhere-data", "repository": "elsewhere/images",
        "role": role, "group": "elsewhere", "log group": "elsewhere", "placement group": "elsewhere",
        "policy": boundary, "parameter": "/elsewhere/image",
    }  # fmt: skip
    inside = {"subnet", "security group", "route table"}
    made.one("image", "ami-0123456789abcdef0")
    ids = {kind: made.one(kind, name, **({"vpc": vpc} if kind in inside else {})) for kind, name in names.items()}
    assert all(stands_in for _, stands_in in ids.values())
    assert ids["policy"][0] == f"arn:aws:iam::{ACCOUNT}:policy/limits/boundary"
    aws["s3"].put_object(Bucket="elsewhere-data", Key="a", Body=b"a")
    assert made.grant("group", "elsewhere", "reads", POLICY)
    assert made.grant("role", role, "reads", POLICY)
    assert {kind: made.one(kind, name) for kind, name in names.items()} == ids, "made once"
    others = StandIns(shared_cloud, print, "eu-north-1")
    found = {kind: others.one(kind, names[kind])[1] for kind in ("bucket", "role", "group", "policy")}
    assert not any(found.values()), "what is there needs no stand-in"
    StandIns(shared_cloud, print, "us-east-1").remove(lambda kind, name: False)
    again = StandIns(shared_cloud, print, "eu-west-1")
    left = {kind for kind, (name, _) in ids.items() if again.is_there(kind, name)}
    assert not left | {kind for kind in ("vpc",) if again.is_there(kind, vpc)}


def test_a_stand_in_vpc_contains_the_subnets_of_all_stacks(
    aws: AwsClients, shared_cloud: Cloud, tmp_path: Path
) -> None:
    """A VPC elsewhere has the addresses that its owner chose, and stack files name parts of them."""
    require_program("ssh-keygen")
    file, vpcs = tmp_path / "Pulumi.brought.yaml", set()
    whole = yaml.safe_load(stack_file("aws-dl1-resnet").read_text())
    whole["config"]["trainyard:jobs"] = {}
    try:
        for subnet in ("10.60.1.0/24", "10.60.2.0/24", "10.61.0.0/16"):
            whole["config"]["trainyard:network"] = {"vpc": "vpc-0c0a1b2c3d4e5f607", "subnetCidr": subnet}
            file.write_text(yaml.safe_dump(whole))
            plan = aws_dl1_plan(plan_file(file, print))
            stand_in = partial(LOCAL.stand_in, plan=plan, cloud=shared_cloud, tell=print)
            made = localize_config(whole["config"], plan, stand_in, STACKS)
            vpcs.add(made.config["trainyard:network"]["vpc"])
            (vpc,) = vpcs
            there = aws["ec2"].create_subnet(VpcId=vpc, CidrBlock=subnet)
            aws["ec2"].delete_subnet(SubnetId=there["Subnet"]["SubnetId"])
    finally:
        LOCAL.remove_stand_ins(shared_cloud, print, with_data=True)
