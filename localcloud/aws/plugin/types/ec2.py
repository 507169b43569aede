# SPDX-License-Identifier: Apache-2.0
"""Functions that the rows of EC2's types share."""

from collections.abc import Mapping
from typing import Any

from localcloud.aws.plugin.rows import AwsRow, Read, Tagging, words


def by_field(name: str) -> Tagging:
    """Tags of a resource whose id is in this field."""
    return Tagging("CreateTags", "DeleteTags", {"Resources": [f"{{{name}}}"]}, keys="Tags")


def ec2(inputs: str, outputs: str = "", **more: Any) -> AwsRow:
    return AwsRow(service="ec2", inputs=words(inputs), outputs=words(outputs), **more)


def tagged(kind: str, inputs: str, outputs: str = "", **more: Any) -> AwsRow:
    """A type with tags. `kind` is EC2's name of it."""
    return ec2(f"{inputs} tags", f"{outputs} tagsAll", kind=kind, **{"tagging": by_field("id"), **more})


def described(operation: str, by: str, at: str, **more: Any) -> Read:
    return Read(operation, {by: ["{id}"]}, at, **more)


def filtered(operation: str, at: str, filters: Mapping[str, str]) -> Read:
    return Read(operation, {"Filters": [{"Name": name, "Values": [value]} for name, value in filters.items()]}, at)


def arn(kind: str) -> dict[str, str]:
    return {"arn": f"arn:aws:ec2:{{region}}:{{account}}:{kind}/{{id}}"}
