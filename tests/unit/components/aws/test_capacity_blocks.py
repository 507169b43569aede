# SPDX-License-Identifier: Apache-2.0
"""What is said of the capacity block that a job names, before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from components.aws.access_report import deployer_policies
from components.aws.plan import AwsDl1Plan, AwsJobPlan
from components.aws.resources.capacity_blocks import find_block_problems, find_long_runs, find_scattered_blocks
from components.aws.stack import AwsNetwork, Cluster
from schemas.model import Shape
from tests.support.aws_plans import aws_job, aws_plan

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
BLOCK = {
    "reservationType": "capacity-block", "instanceType": "p5en.48xlarge", "availabilityZone": "us-east-1b",
    "totalInstanceCount": 4, "startDate": (NOW - timedelta(hours=1)).isoformat(),
    "endDate": (NOW + timedelta(hours=30)).isoformat(),
}  # fmt: skip


def block_plan(**network: Any) -> AwsDl1Plan:
    cluster = Cluster(ami="ami-1", market="capacity-block", reservation="cr-1")
    jobs = {
        "resnet": aws_job(shape=Shape("p5en.48xlarge"), cluster=cluster),
        "small": aws_job(shape=Shape("g5.xlarge")),
    }
    return aws_plan(jobs=jobs, network=AwsNetwork(**network))


def resnet() -> AwsJobPlan:
    return block_plan().jobs["resnet"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"reservationType": "default"}, "is not a capacity block but a reservation of On-Demand instances"),
        ({"instanceType": "p5.48xlarge"}, "is a block of p5.48xlarge, but the job wants p5en.48xlarge"),
        ({"totalInstanceCount": 1}, "has 1 machine, but its jobs need 3"),
        ({"endDate": (NOW + timedelta(minutes=30)).isoformat()}, "ended the machines of cr-1 at 2026-11-28 12:00 UTC"),
        ({"startDate": (NOW + timedelta(hours=1)).isoformat()}, "begins at 2026-11-28 13:00 UTC"),
        # A review knows nothing of a block.
        (dict.fromkeys(BLOCK), None),
    ],
)
def test_a_block_that_cannot_carry_the_job_is_refused(changes: Mapping[str, Any], words: str | None) -> None:
    found = [wrong.message for wrong in find_block_problems("resnet", resnet(), {**BLOCK, **changes}, 3, NOW)]
    assert len(found) == (words is not None)
    assert not words or words in found[0]


def test_a_run_that_may_outlast_its_block_is_announced() -> None:
    job, minutes = resnet(), 30 * 60 - 30
    assert not [*find_long_runs("resnet", replace(job, maximum_runtime_minutes=minutes), BLOCK, NOW)]
    (wrong,) = find_long_runs("resnet", replace(job, maximum_runtime_minutes=minutes + 1), BLOCK, NOW)
    assert f"in {minutes}, at 2026-11-29 17:30 UTC: 30 minutes before the block" in wrong.message
    assert f"maximumRuntimeMinutes: {minutes}`" in wrong.remedy
    over = {**BLOCK, "endDate": NOW.isoformat()}
    assert not [*find_long_runs("resnet", job, over, NOW)], "that it has ended is said instead"


@pytest.mark.parametrize(
    ("network", "zones", "offering", "words"),
    [
        ({}, {"resnet": "us-east-1b"}, ("us-east-1b",), []),
        ({"zone": "us-east-1b"}, {"resnet": "us-east-1b"}, (), []),
        ({"zone": "us-east-1a"}, {"resnet": "us-east-1b"}, (), ["cr-1 of the job `resnet` lies in us-east-1b"]),
        ({}, {"resnet": "us-east-1b"}, ("us-east-1a",), ["lies in us-east-1b, which does not offer `g5.xlarge`"]),
        (
            {},
            {"resnet": "us-east-1b", "small": "us-east-1c"},
            (),
            ["several zones (`resnet` in us-east-1b, `small` in"],
        ),
    ],
)
def test_a_subnet_lies_in_the_zone_of_its_blocks(
    network: Mapping[str, Any], zones: Mapping[str, str], offering: tuple[str, ...], words: list[str]
) -> None:
    found = [wrong.message for wrong in find_scattered_blocks(zones, block_plan(**network), offering)]
    assert len(found) == len(words)
    assert all(part in message for part, message in zip(words, found, strict=True))


def test_only_a_deployer_of_capacity_blocks_may_look_at_them() -> None:
    def actions(plan: AwsDl1Plan) -> set[str]:
        return {action for policy in deployer_policies(plan) for one in policy.statements for action in one.actions}

    assert "ec2:DescribeCapacityReservations" in actions(block_plan())
    reserved = aws_plan(jobs={"resnet": aws_job(cluster=Cluster(ami="ami-1", reservation="cr-1"))})
    assert "ec2:DescribeCapacityReservations" not in actions(reserved)
