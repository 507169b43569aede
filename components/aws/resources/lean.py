# SPDX-License-Identifier: Apache-2.0
"""The packages of pulumi_aws that a stack uses, imported leanly. `ec2` alone has 200 modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi_aws

from components import lean

PACKAGES = ("cloudwatch", "ec2", "ecr", "iam", "s3", "secretsmanager", "vpc")


def make_lean() -> None:
    """Replaces packages that are not imported yet with lean ones."""
    lean.make_lean(pulumi_aws, PACKAGES)


def lookup(package: str, function: str, **arguments: Any) -> Mapping[str, Any]:
    """The result of a function of the provider, with the provider's names."""
    return lean.lookup(pulumi_aws, f"aws:{package}/{function}:{function}", **arguments)
