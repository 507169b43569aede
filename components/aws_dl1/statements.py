# SPDX-License-Identifier: Apache-2.0
"""A plan's grants as policy documents of IAM. Pure: `trainyard access` prints them without any SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.tables import table
from components.aws_dl1.plan import AwsDl1Plan
from components.plan.model import Grant

VERSION = "2012-10-17"
# Who takes on the role of the nodes.
TRUST = {
    "Version": VERSION,
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}


@dataclass(frozen=True, slots=True)
class AwsPolicy:
    """What one kind of principal may do: a document of this stack's, or policies that AWS keeps."""

    who: str
    document: Mapping[str, Any] | None
    managed: tuple[str, ...]


def policies(plan: AwsDl1Plan) -> tuple[AwsPolicy, ...]:
    """One for the users and one for the nodes."""
    return tuple(_policy(plan, who) for who in ("users", "runs"))


def _policy(plan: AwsDl1Plan, who: str) -> AwsPolicy:
    managed = table("aws_dl1")["managed"].get(plan.access.mode)
    if managed is not None:
        return AwsPolicy(who, None, tuple(f"arn:aws:iam::aws:policy/{name}" for name in managed[who]))
    granted = [grant for grant in plan.access.grants if grant.who == who]
    return AwsPolicy(who, {"Version": VERSION, "Statement": _statements(plan, granted)}, ())


def _statements(plan: AwsDl1Plan, granted: list[Grant]) -> list[dict[str, Any]]:
    """One statement for each resource, with all actions on it."""
    actions: dict[str, set[str]] = {}
    for grant in granted:
        for row in table("aws_dl1")["actions"].get(f"{grant.does} {grant.what}", ()):
            resource = _resources(plan, grant.target or plan.bucket.name)[row["on"]]
            actions.setdefault(resource, set()).update(row["actions"])
    nodes = _resources(plan, "")["nodes"]
    return [
        {
            "Effect": "Allow",
            "Action": sorted(named),
            "Resource": resource,
            **({"Condition": {"StringEquals": {"ssm:resourceTag/stack": plan.stack}}} if resource == nodes else {}),
        }
        for resource, named in actions.items()
    ]


def _resources(plan: AwsDl1Plan, bucket: str) -> dict[str, str]:
    """By the name that rows give a resource, its ARN. Without the account's number any account's is meant."""
    here = f"{plan.region}:{plan.account or '*'}"
    return {
        "all": "*",
        "repository": f"arn:aws:ecr:{here}:repository/{plan.registry.repository}",
        "bucket": f"arn:aws:s3:::{bucket}",
        "objects": f"arn:aws:s3:::{bucket}/*",
        "log group": f"arn:aws:logs:{here}:log-group:{plan.logs.group_name}:*",
        "nodes": f"arn:aws:ec2:{here}:instance/*",
        "command document": f"arn:aws:ssm:{plan.region}::document/AWS-RunShellScript",
    }
