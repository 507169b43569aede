# SPDX-License-Identifier: Apache-2.0
"""Random statements that grant more, and calls to a local cloud: a call that the change allows must be a gain in the
review.

TRAINYARD_TORTURE=<count> runs more of them. The local cloud is the reference: it refuses a scientist's call before the
change, and accepts it after the change.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import oci
import pytest
from botocore.exceptions import ClientError

from catalog.platforms import require_capability
from components.platform.circumstances import OTHER
from components.platform.review import EVERYBODY, ReviewPlatform, Snapshot
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import Clients
from tests.support.counts import FIRST, wanted
from tests.support.reviews import resource
from tests.support.widenings import VERBS, Allow, AwsStatement, allow_aws, widened_aws, widened_oci

pytestmark = pytest.mark.torture

COUNT = wanted(sample=5, full=300)
WHO, BUCKETS = "group scientists", ("vision-dev", "vision-prod", "secret")
Call = Callable[[], object]
# Call -> operations, one of which must be among the gains.
Calls = Mapping[str, tuple[Call, frozenset[str]]]


def passing(calls: Calls) -> set[str]:
    return {name for name, (call, _) in calls.items() if _passes(call)}


def _passes(call: Call) -> bool:
    try:
        call()
    except (oci.exceptions.ServiceError, ClientError) as answer:
        status = getattr(answer, "status", None) or answer.response["ResponseMetadata"]["HTTPStatusCode"]
        if status not in (400, 403, 404):
            raise
        return False
    return True


def held_to(was: set[str], now: set[str], calls: Calls, sides: tuple[Snapshot, Snapshot]) -> None:
    then, after = require_capability(sides[0].platform, ReviewPlatform).abilities(sides)
    for name in now - was:
        assert _says(after - then, calls[name][1]), (name, sides)
    for name in was - now:
        assert _says(then - after, calls[name][1]), (name, sides)


def _says(abilities: Any, operations: frozenset[str]) -> bool:
    """Whether a gain covers the call. The placeholder for resources that no statement names matches every resource."""
    patterns = {one.operation.replace(OTHER, "*") for one in abilities if one.principal in (WHO, EVERYBODY)}
    return any(fnmatchcase(name, pattern) for name in operations for pattern in patterns)


def test_oci_calls_that_a_change_allows_are_gains_in_the_review(cloud: Cloud) -> None:
    chance, deployer = random.Random(FIRST), Clients(cloud)
    calls = _calls_of_oci(cloud, deployer, Clients(cloud, "user"))
    policy = deployer.identity.create_policy(
        oci.identity.models.CreatePolicyDetails(
            compartment_id=cloud.tenancy, name="random", description="-", statements=[_oci(cloud, chance).text]
        )
    ).data

    def put(rows: Sequence[Allow]) -> set[str]:
        texts = [one.text for one in rows]
        deployer.identity.update_policy(policy.id, oci.identity.models.UpdatePolicyDetails(statements=texts))
        return passing(calls)

    opened = 0
    for _ in range(20 * COUNT):
        before = [_oci(cloud, chance) for _ in range(chance.randint(1, 3))]
        after = widened_oci(before, chance)
        was, now = put(before), put(after)
        held_to(was, now, calls, (_side_of_oci(cloud, before), _side_of_oci(cloud, after)))
        opened += bool(now - was)
        if opened == COUNT:
            return
    raise AssertionError(f"{opened} changes let a call through")


def _oci(cloud: Cloud, chance: random.Random) -> Allow:
    kinds = ("objects", "buckets", "object-family", "repos", "data-science-family", "vcns", "log-groups")
    conditions = (
        "", "", "target.bucket.name = 'vision-dev'", "target.bucket.name = /vision-*/",
        "target.bucket.name != 'secret'", "request.permission != 'OBJECT_DELETE'",
        "any {target.bucket.name = 'vision-dev', request.operation = 'GetObject'}",
    )  # fmt: skip
    return Allow(
        chance.choice(("group scientists", "group scientists", "group others", "any-user")),
        f"{chance.choice(VERBS)} {chance.choice(kinds)}",
        chance.choice(("tenancy", f"compartment id {cloud.compartment}")),
        chance.choice(conditions),
    )


def _side_of_oci(cloud: Cloud, rows: Sequence[Allow]) -> Snapshot:
    texts = [one.text for one in rows]
    policy = resource("oci:Identity/policy:Policy", "p", compartmentId=cloud.tenancy, statements=texts)
    return Snapshot("dev", "oci", {"tenancy": cloud.tenancy, "compartment": cloud.compartment}, (policy,))


def _calls_of_oci(cloud: Cloud, deployer: Clients, user: Clients) -> Calls:
    namespace = deployer.storage.get_namespace().data
    calls: dict[str, tuple[Call, frozenset[str]]] = {}
    for bucket in BUCKETS:
        details = oci.object_storage.models.CreateBucketDetails(name=bucket, compartment_id=cloud.compartment)
        deployer.storage.create_bucket(namespace, details)
        deployer.storage.put_object(namespace, bucket, "a", b"1")
        of_bucket = {
            "get": (lambda bucket=bucket: user.storage.get_object(namespace, bucket, "a"), {"OBJECT_READ"}),
            "list": (lambda bucket=bucket: user.storage.list_objects(namespace, bucket), {"OBJECT_INSPECT"}),
            "put": (
                lambda bucket=bucket: user.storage.put_object(namespace, bucket, "a", b"1"),
                {"OBJECT_CREATE", "OBJECT_OVERWRITE"},
            ),
            "look at": (lambda bucket=bucket: user.storage.get_bucket(namespace, bucket), {"BUCKET_READ"}),
        }
        calls |= {f"{name} {bucket}": (call, frozenset(needs)) for name, (call, needs) in of_bucket.items()}
    place = cloud.compartment
    return calls | {
        "list buckets": (lambda: user.storage.list_buckets(namespace, place), frozenset({"BUCKET_INSPECT"})),
        "list VCNs": (lambda: user.network.list_vcns(place), frozenset({"VCN_READ"})),
        "list repositories": (
            lambda: user.artifacts.list_container_repositories(place),
            frozenset({"REPOSITORY_INSPECT", "REPOSITORY_READ"}),
        ),
        "list jobs": (lambda: user.data_science.list_jobs(place), frozenset({"DATA_SCIENCE_JOB_INSPECT"})),
    }


ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:Get*", "s3:*", "ec2:Describe*", "ecr:*", "logs:Describe?ogGroups", "*")
RESOURCES = ("arn:aws:s3:::vision-dev/*", "arn:aws:s3:::vision-*/*", "arn:aws:s3:::*", "*")
CONDITIONS: tuple[AwsStatement, ...] = (
    {}, {}, {},
    {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}},
    {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
    {"StringEquals": {"aws:username": "nobody"}},
    {"StringLike": {"aws:username": "*"}},
)  # fmt: skip


def _aws(chance: random.Random, conditions: Sequence[AwsStatement] = CONDITIONS) -> AwsStatement:
    return allow_aws(chance.choice(ACTIONS), chance.choice(RESOURCES), chance.choice(conditions))


def test_aws_calls_that_a_change_allows_are_gains_in_the_review(cloud: Cloud) -> None:
    chance, deployer = random.Random(FIRST), AwsClients(cloud)
    calls = _calls_of_aws(deployer, AwsClients(cloud, "user"))

    def put(rows: Sequence[AwsStatement]) -> set[str]:
        document = json.dumps({"Version": "2012-10-17", "Statement": rows})
        deployer["iam"].put_group_policy(GroupName="scientists", PolicyName="random", PolicyDocument=document)
        return passing(calls)

    opened = 0
    for _ in range(20 * COUNT):
        before = [_aws(chance) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.4:
            before.append({**_aws(chance), "Effect": "Deny"})
        after = widened_aws(before, chance, _aws(chance, ({},)))
        if before[-1]["Effect"] == "Deny" and chance.random() < 0.3:
            after = before[:-1]
        was, now = put(before), put(after)
        held_to(was, now, calls, (_side_of_aws(before), _side_of_aws(after)))
        opened += bool(now - was)
        if opened == COUNT:
            return
    raise AssertionError(f"{opened} changes let a call through")


def _side_of_aws(rows: Sequence[AwsStatement]) -> Snapshot:
    document = json.dumps({"Version": "2012-10-17", "Statement": rows})
    policy = resource("aws:iam/groupPolicy:GroupPolicy", "p", group="scientists", name="random", policy=document)
    return Snapshot("dev", "aws-dl1", {}, (policy,))


def _calls_of_aws(deployer: AwsClients, user: AwsClients) -> Calls:
    calls: dict[str, tuple[Call, frozenset[str]]] = {}
    for bucket in BUCKETS:
        deployer["s3"].create_bucket(Bucket=bucket)
        deployer["s3"].put_object(Bucket=bucket, Key="a", Body=b"1")
        of_bucket = {
            "s3:GetObject": lambda bucket=bucket: user["s3"].get_object(Bucket=bucket, Key="a"),
            "s3:PutObject": lambda bucket=bucket: user["s3"].put_object(Bucket=bucket, Key="a", Body=b"1"),
            "s3:ListBucket": lambda bucket=bucket: user["s3"].list_objects_v2(Bucket=bucket),
        }
        calls |= {f"{name} {bucket}": (call, frozenset({name})) for name, call in of_bucket.items()}
    others = {
        "ec2:DescribeVpcs": lambda: user["ec2"].describe_vpcs(),
        "ecr:DescribeRepositories": lambda: user["ecr"].describe_repositories(),
        "logs:DescribeLogGroups": lambda: user["logs"].describe_log_groups(),
    }
    return calls | {name: (call, frozenset({name})) for name, call in others.items()}
