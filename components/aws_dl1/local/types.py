# SPDX-License-Identifier: Apache-2.0
"""AWS's types of resources, as states and people call them, and how other stacks name what is of such a type."""

from __future__ import annotations

import re

from components.platform.states import Row, State, has_address

BUCKET = "aws:s3/bucket:Bucket"
REPOSITORY = "aws:ecr/repository:Repository"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
ROLE = "aws:iam/role:Role"
PROFILE = "aws:iam/instanceProfile:InstanceProfile"
INSTANCE = "aws:ec2/instance:Instance"
OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"
# How a bucket is set up is a resource of its own each; nobody names them one by one.
_SETTINGS = "aws:s3/bucket"
# Where a type's own name is not what people call it.
_WORDS = {REPOSITORY: "repository", "aws:ec2/vpc:Vpc": "VPC", "aws:ec2/eip:Eip": "Elastic IP"}
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ID = re.compile(r"[a-z]+-[0-9a-f]{8,17}")
# What other stacks name by its name, and the output that shows it.
_NAMED = {LOG_GROUP: "logGroup", ROLE: "nodesRole", PROFILE: "instanceProfile"}
# Names of log groups are unique in a region, the others in the account.
_REGIONAL = frozenset({LOG_GROUP})


def name_of(row: Row) -> str:
    """What the resource is called in AWS: by its name, else by its tag, else by its key."""
    values = row.get("outputs") or row.get("inputs") or {}
    tags = values.get("tags") or {}
    return str(values.get("bucket") or values.get("name") or tags.get("Name") or row["urn"].rpartition("::")[2])


def describe_resource(row: Row) -> str:
    """`security group demo-prod-nodes`."""
    if row["type"] == OBJECT:
        return f"object {(row.get('inputs') or {}).get('key', '')} in the bucket {name_of(row)}"
    if row["type"].startswith(_SETTINGS) and row["type"] != BUCKET:
        return f"settings of the bucket {name_of(row)}"
    kind = _WORDS.get(row["type"]) or _HUMPS.sub(" ", row["type"].rpartition(":")[2]).lower()
    return f"{kind} {name_of(row)}"


def is_named(row: Row, own: State, by: State, inputs: str) -> bool:
    """Whether a stack names the resource: by its id or address in `inputs`, all of its resources' as text, or in an
    output."""
    if _ID.fullmatch(row["id"]) and row["id"] in inputs:
        return True
    outputs = by.outputs() if by.provider("aws") and any(by.made()) else {}
    if output := _NAMED.get(row["type"]):
        place = ("account", "region") if row["type"] in _REGIONAL else ("account",)
        here = own.outputs()
        return outputs.get(output) == name_of(row) and all(outputs.get(key) == here.get(key) for key in place)
    address = _address(row)
    return bool(address) and (
        has_address(inputs, address) or address in (outputs.get("bucketUri"), outputs.get("imagePushAddress"))
    )


def _address(row: Row) -> str:
    """By what other stacks name the resource, if not by an id. No other cloud has such an address."""
    if row["type"] == BUCKET:
        return f"s3://{name_of(row)}"
    return str((row.get("outputs") or {}).get("repositoryUrl", "")) if row["type"] == REPOSITORY else ""
