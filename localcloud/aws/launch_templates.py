# SPDX-License-Identifier: Apache-2.0
"""Merges a launch template into the call that launches from it.

It happens once, before the access check. So access is checked for the very launch that is carried out, and no later
step knows of the template's data. A parameter of the call replaces the template's, structures and lists as a whole; a
subnet of the call is for the template's interfaces that have none. Tags are merged by their keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from localcloud.aws.border.parameters import read_flat_parameters, write_flat_parameters
from localcloud.aws.border.requests import service_model
from localcloud.aws.calls import AwsCall
from localcloud.aws.moto_state import moto_backend

# Parameters that a launch never takes from its template.
_OWN = frozenset({"MinCount", "MaxCount", "ClientToken", "DryRun", "LaunchTemplate", "TagSpecifications"})
# The name of a tag's key. One operation has the plural.
_TAG = re.compile(r"((TagSpecifications?\.\d+)\.Tag\.\d+)\.Key", re.ASCII)
TagsByType = dict[str, dict[str, str]]


def with_launch_template(call: AwsCall) -> AwsCall:
    """The call with the parameters of its launch template. A call of another operation, and one whose template is
    missing, is returned as it is: moto refuses the latter."""
    if call.name != "ec2.RunInstances" or not (version := _version_of(call)):
        return call
    shape = service_model("ec2").operation_model("RunInstances").input_shape
    own = {name.partition(".")[0] for name in call.parameters}
    data: dict[str, Any] = {
        name: str(value) if name == "UserData" else value for name, value in version.data.items()
        if name not in _OWN and value is not None
    }  # fmt: skip
    given: Mapping[str, str] = call.parameters
    if "SubnetId" in own and "NetworkInterface" not in own and data.get("NetworkInterfaces") and "SubnetId" not in data:
        subnet: dict[str, Any] = {"SubnetId": given["SubnetId"]}
        data["NetworkInterfaces"] = [{**subnet, **interface} for interface in data["NetworkInterfaces"]]
        given = {name: value for name, value in given.items() if name != "SubnetId"}
    merged = {
        name: text for name, text in write_flat_parameters(data, shape).items() if name.partition(".")[0] not in own
    }
    merged |= {name: text for name, text in given.items() if not name.startswith("TagSpecification.")}
    # The tags of the template with those of the call.
    tags: TagsByType = {}
    for row in version.data.get("TagSpecifications", []):
        pairs = {tag["Key"]: tag.get("Value", "") for tag in row.get("Tags", [])}
        tags.setdefault(row.get("ResourceType", ""), {}).update(pairs)
    for kind, pairs in tags_given(given).items():
        tags.setdefault(kind, {}).update(pairs)
    listed = [
        {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in pairs.items()]}
        for kind, pairs in tags.items()
    ]
    merged |= write_flat_parameters({"TagSpecifications": listed}, shape)
    return replace(call, parameters=read_flat_parameters(merged, shape, call.service.wire))


def _version_of(call: AwsCall) -> Any:
    """The version of the launch template that a launch names, or None."""
    named = {
        name: text for name in ("LaunchTemplateId", "LaunchTemplateName", "Version")
        if (text := call.text(f"LaunchTemplate.{name}"))
    }  # fmt: skip
    try:
        return moto_backend("ec2", call.region)._get_template_from_args(named) if named else None
    except Exception:  # RunInstances asks for it again, and moto then answers with this error
        return None


def tags_given(parameters: Mapping[str, str]) -> TagsByType:
    """The tags that a request of EC2 gives to new resources, by resource type."""
    given: TagsByType = {}
    for name, value in parameters.items():
        if match := _TAG.fullmatch(name):
            kind = parameters.get(f"{match[2]}.ResourceType", "")
            given.setdefault(kind, {})[value] = parameters.get(f"{match[1]}.Value", "")
    return given
