# SPDX-License-Identifier: Apache-2.0
"""Resources as policies of IAM name them: rows of catalog/aws_dl1_access.toml, filled in for a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.tables import table
from components.aws_dl1.plan import AwsDl1Plan

ANY = "*"


@dataclass(frozen=True, slots=True)
class NamedResource:
    """What a statement is on. `condition` narrows where names cannot. `words`: for people.

    `arns` is empty where the plan has no such resource.
    """

    arns: tuple[str, ...]
    condition: Mapping[str, Mapping[str, Any]]
    words: str


def named_resource(plan: AwsDl1Plan, name: str, bucket: str | None = None) -> NamedResource:
    """The resource of a row. `bucket`: another bucket than the stack's own, such as one of input data."""
    row = table("aws_dl1_access")["resources"][name]
    values = _values(plan, bucket or plan.bucket.name)
    there = _has_users(plan, row.get("of"))
    arns = [arn for pattern in row["arns"] for arn in _arns(pattern, values, _of_jobs(plan)) if there]
    return NamedResource(
        tuple(dict.fromkeys(arns)), _filled(row.get("only", {}), values), row["words"].format(**values)
    )


def _has_users(plan: AwsDl1Plan, kind: str | None) -> bool:
    """Whether the stack's users are of this kind; anybody is where no kind is named."""
    access = plan.access
    return {None: True, "group": access.users_group is not None, "role": access.users_role is not None}[kind]


def _arns(pattern: str, values: Mapping[str, str], of_jobs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One ARN, or one for each job where the pattern names what jobs have."""
    for name, texts in of_jobs.items():
        if f"{{{name}}}" in pattern:
            yield from (pattern.format(**values, **{name: text}) for text in texts)
            return
    yield pattern.format(**values)


def _of_jobs(plan: AwsDl1Plan) -> dict[str, Sequence[str]]:
    clusters = [job.cluster for job in plan.jobs.values()]
    return {
        "job": [cluster.key for cluster in clusters],
        "cluster": [cluster.name for cluster in clusters],
        "image": [cluster.image or ANY for cluster in clusters],
        "parameter": [cluster.image_parameter for cluster in clusters if cluster.image_parameter],
        "reservation": [cluster.reservation for cluster in clusters if cluster.reservation],
        "placement_group": [cluster.placement_group for cluster in clusters if cluster.placement_group],
    }


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(item, values) for key, item in value.items()}
    return [_filled(item, values) for item in value] if isinstance(value, list) else str(value).format(**values)


def _values(plan: AwsDl1Plan, bucket: str) -> dict[str, str]:
    # Without the account's number an ARN means any account: IAM still grants only what is in its own.
    account = plan.account or ANY
    return {
        "region": plan.region,
        "account": account,
        "here": f"{plan.region}:{account}",
        "stack": plan.stack,
        "prefix": f"{plan.team}-{plan.environment}",
        "bucket": bucket,
        "repository": plan.registry.repository,
        "log_group": plan.logs.group_name,
        "key": plan.bucket.key or "",
        "role": plan.access.runs_role,
        "profile": f"{plan.team}-{plan.environment}-nodes" if plan.access.create else plan.access.runs_role,
        "vpc": plan.network.vpc or ANY,
        "route_table": plan.network.route_table or ANY,
        "subnet": plan.network.subnet or ANY,
        "security_group": plan.network.security_group,
        "users": _users(plan, account),
    }


def _users(plan: AwsDl1Plan, account: str) -> str:
    access = plan.access
    named = f"role/{access.users_role}" if access.users_role else f"group/{access.users_group or ANY}"
    return f"arn:aws:iam::{account}:{named}"
