# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift --orphans` on AWS names exactly what a killed `up` left, and removes that and nothing else.

The oracle is what each service of the local AWS describes to Amazon's own client, not the tagging API.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from catalog.environments import Need
from localcloud.environments.find import MissingEnvironment, find_environment_for
from tests.support.aws_clients import AwsClients
from tests.support.counts import FIRST, wanted
from tests.support.local_team import Team
from tests.support.orphaning import Orphanage
from tests.support.programs import require_program

pytestmark = pytest.mark.engine

_STACK, _REGION = "aws-small", "us-west-2"
_VPC = "aws:ec2/vpc:Vpc"
# The state of a whole `up` has about so many resources.
_MOST_ROWS = 40


@pytest.fixture
def orphanage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orphanage]:
    if isinstance(find_environment_for(Need("pytorch", None, frozenset({"torch"}))), MissingEnvironment):
        pytest.skip("no local environment with PyTorch")
    require_program("ssh-keygen")
    team = Team(tmp_path_factory.mktemp("orphans"), _STACK)
    try:
        yield Orphanage(team, _STACK)
    finally:
        team.end()


def _clients(orphanage: Orphanage) -> AwsClients:
    return AwsClients(orphanage.team.cloud, region=_REGION)


def _make_vpc(orphanage: Orphanage, tags: dict[str, str]) -> str:
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    made = _clients(orphanage)["ec2"].create_vpc(
        CidrBlock="10.9.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": rows}]
    )
    return str(made["Vpc"]["VpcId"])


def _described(orphanage: Orphanage, stack: str) -> set[str]:
    """The last part of the ARN of everything with the stack's tag. Rules, disks and cards go with others."""
    clients = _clients(orphanage)
    return {
        *_described_by_ec2(clients["ec2"], stack),
        *_described_by_iam(clients["iam"], stack),
        *_described_by_others(clients, stack),
    }


def _described_by_ec2(ec2: Any, stack: str) -> set[str]:
    tagged = {"Filters": [{"Name": "tag:stack", "Values": [stack]}]}
    found = set()
    for operation, rows, key in (
        ("vpcs", "Vpcs", "VpcId"), ("subnets", "Subnets", "SubnetId"), ("route_tables", "RouteTables", "RouteTableId"),
        ("security_groups", "SecurityGroups", "GroupId"), ("addresses", "Addresses", "AllocationId"),
        ("internet_gateways", "InternetGateways", "InternetGatewayId"),
        ("vpc_endpoints", "VpcEndpoints", "VpcEndpointId"), ("placement_groups", "PlacementGroups", "GroupName"),
        ("launch_templates", "LaunchTemplates", "LaunchTemplateId"), ("nat_gateways", "NatGateways", "NatGatewayId"),
    ):  # fmt: skip
        named = {"Filter": tagged["Filters"]} if operation == "nat_gateways" else tagged
        described = getattr(ec2, f"describe_{operation}")(**named)[rows]
        found |= {row[key] for row in described if row.get("State") not in ("deleted", "deleting")}
    for reservation in ec2.describe_instances(**tagged)["Reservations"]:
        found |= {row["InstanceId"] for row in reservation["Instances"] if row["State"]["Name"] != "terminated"}
    return found


def _is_of_stack(rows: Any, stack: str) -> bool:
    pairs = rows.items() if isinstance(rows, dict) else [tuple(row.values()) for row in rows]
    return ("stack", stack) in pairs


def _described_by_iam(iam: Any, stack: str) -> set[str]:
    found = set()
    for role in iam.list_roles()["Roles"]:
        if _is_of_stack(iam.list_role_tags(RoleName=role["RoleName"])["Tags"], stack):
            found.add(role["RoleName"])
    for policy in iam.list_policies(Scope="Local")["Policies"]:
        if _is_of_stack(iam.list_policy_tags(PolicyArn=policy["Arn"])["Tags"], stack):
            found.add(policy["PolicyName"])
    for profile in iam.list_instance_profiles()["InstanceProfiles"]:
        name = profile["InstanceProfileName"]
        whole = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        if _is_of_stack(whole.get("Tags") or [], stack):
            found.add(name)
    return found


def _described_by_others(clients: AwsClients, stack: str) -> set[str]:
    found = set()
    for repository in clients["ecr"].describe_repositories()["repositories"]:
        if _is_of_stack(clients["ecr"].list_tags_for_resource(resourceArn=repository["repositoryArn"])["tags"], stack):
            found.add(repository["repositoryName"].rpartition("/")[2])
    for group in clients["logs"].describe_log_groups()["logGroups"]:
        if _is_of_stack(clients["logs"].list_tags_log_group(logGroupName=group["logGroupName"])["tags"], stack):
            found.add(group["logGroupName"])
    for secret in clients["secretsmanager"].list_secrets()["SecretList"]:
        if _is_of_stack(secret.get("Tags", []), stack):
            found.add(secret["ARN"].rpartition("/")[2].rpartition(":")[2])
    for bucket in clients["s3"].list_buckets()["Buckets"]:
        try:
            tags = clients["s3"].get_bucket_tagging(Bucket=bucket["Name"])["TagSet"]
        except clients["s3"].exceptions.ClientError:
            continue
        if _is_of_stack(tags, stack):
            found.add(bucket["Name"])
    return found


def _last_parts(ids: Iterable[str]) -> set[str]:
    return {arn.rpartition("/")[2].rpartition(":")[2] for arn in ids}


@pytest.mark.torture
def test_what_a_killed_up_left_is_named_and_removed_and_nothing_else(orphanage: Orphanage) -> None:
    seed = int(os.environ.get("TRAINYARD_SEED") or FIRST or 1)
    ours = {"managed-by": "trainyard", "team": "forecast", "environment": "dev"}
    others = _make_vpc(orphanage, {**ours, "stack": "other"})
    strangers = _make_vpc(orphanage, {"managed-by": "trainyard", "stack": _STACK})
    for chance in (random.Random(seed + number) for number in range(wanted(1, 20))):
        orphanage.kill_up_after(chance.randint(8, _MOST_ROWS))
        orphanage.write_state("other", [{"type": _VPC, "id": others}])
        orphanage.wait_until_still(lambda: _described(orphanage, _STACK))
        left = _described(orphanage, _STACK)
        code, found, said = orphanage.orphans(_STACK)
        assert (code, _last_parts(found)) == (1, left), said
        code, found, said = orphanage.orphans(_STACK, "--remove", "--yes", "--delete-data")
        assert (code, _described(orphanage, _STACK)) == (1, {strangers}), f"{said}\n{found}"
        assert _described(orphanage, "other") == {others}


def test_a_caller_who_may_not_search_is_told_so(orphanage: Orphanage) -> None:
    _make_vpc(orphanage, {"managed-by": "trainyard", "stack": _STACK, "team": "a", "environment": "dev"})
    code, found, said = orphanage.orphans(_STACK, "--profile", "user")
    assert (code, found) == (2, {})
    assert "the tagged resources of us-west-2: the caller may not list them" in said
    code, found, said = orphanage.orphans(_STACK, "--place", "us-east-1")
    assert (code, found) == (0, {}), said
    code, found, said = orphanage.orphans(_STACK, "--place", "xx-nowhere-1")
    assert (code, found) == (2, {})
    assert "xx-nowhere-1 is not a region of AWS" in said
