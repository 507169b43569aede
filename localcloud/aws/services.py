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
    """A service: its names in signatures, in moto, in actions of policies and for people, and its format."""

    signing: str
    backend: str
    prefix: str
    title: str
    wire: Wire
    json_version: str = "1.1"


_ROWS = (
    AwsService("ec2", "ec2", "ec2", "EC2", Wire.EC2),
    AwsService("s3", "s3", "s3", "S3", Wire.S3),
    AwsService("iam", "iam", "iam", "IAM", Wire.QUERY),
    AwsService("sts", "sts", "sts", "STS", Wire.QUERY),
    AwsService("ssm", "ssm", "ssm", "Systems Manager", Wire.JSON),
    AwsService("ecr", "ecr", "ecr", "ECR", Wire.JSON),
    AwsService("kms", "kms", "kms", "KMS", Wire.JSON),
    AwsService("logs", "logs", "logs", "CloudWatch Logs", Wire.JSON),
    AwsService("secretsmanager", "secretsmanager", "secretsmanager", "Secrets Manager", Wire.JSON),
    AwsService("servicequotas", "servicequotas", "servicequotas", "Service Quotas", Wire.JSON),
    AwsService("tagging", "resourcegroupstaggingapi", "tag", "Resource Groups Tagging", Wire.JSON),
)
SERVICES = {row.signing: row for row in _ROWS}
