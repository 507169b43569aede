# SPDX-License-Identifier: Apache-2.0
"""Plans of small stacks on AWS DL1, typed as such."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from components.aws.plan import AwsDl1Plan, aws_dl1_plan
from components.aws.stack import AwsAccess, AwsDl1Stack, AwsJob, AwsUsers
from components.plan.build import build_plan
from schemas.model import Shape
from tests.support.samples import job

ACCOUNT = "123456789012"
REGION = "us-east-1"


def aws_job(**changes: Any) -> AwsJob:
    neutral = job(shape=Shape("dl1.24xlarge"))
    return AwsJob(**{column.name: getattr(neutral, column.name) for column in fields(neutral)} | changes)


def aws_stack(*, jobs: Mapping[str, AwsJob] | None = None, **changes: Any) -> AwsDl1Stack:
    columns: dict[str, Any] = {
        "name": "vision-dev",
        "team": "vision",
        "environment": "dev",
        "region": REGION,
        "platform": "aws-dl1",
        "account": ACCOUNT,
        "access": AwsAccess(users=AwsUsers(group="scientists")),
        "jobs": {"resnet": aws_job()} if jobs is None else jobs,
    }
    return AwsDl1Stack(**{**columns, **changes})


def aws_plan(*, jobs: Mapping[str, AwsJob] | None = None, **changes: Any) -> AwsDl1Plan:
    return aws_dl1_plan(build_plan(aws_stack(jobs=jobs, **changes)))
