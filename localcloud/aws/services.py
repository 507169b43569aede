# SPDX-License-Identifier: Apache-2.0
"""The services of the local AWS, a row for each. Calls of other services are refused: their access could not be
checked, and their state would not be saved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Wire(Enum):
    """The format of a service's requests and errors."""

    EC2 = "ec2"
    QUERY = "query"
    JSON = "json"
    S3 = "s3"


@dataclass(frozen=True)
class AwsService:
    """A service: its names in signatures, in moto, and in actions of policies, and its format."""

    signing: str
    backend: str
    prefix: str
    wire: Wire
    json_version: str = "1.1"


_ROWS = (
    AwsService("ec2", "ec2", "ec2", Wire.EC2),
    AwsService("s3", "s3", "s3", Wire.S3),
    AwsService("iam", "iam", "iam", Wire.QUERY),
    AwsService("sts", "sts", "sts", Wire.QUERY),
    AwsService("ssm", "ssm", "ssm", Wire.JSON),
    AwsService("ecr", "ecr", "ecr", Wire.JSON),
    AwsService("kms", "kms", "kms", Wire.JSON),
    AwsService("logs", "logs", "logs", Wire.JSON),
    AwsService("secretsmanager", "secretsmanager", "secretsmanager", Wire.JSON),
    AwsService("servicequotas", "servicequotas", "servicequotas", Wire.JSON),
    AwsService("tagging", "resourcegroupstaggingapi", "tag", Wire.JSON),
)
SERVICES = {row.signing: row for row in _ROWS}
