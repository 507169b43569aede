# SPDX-License-Identifier: Apache-2.0
"""The permissions that calls of EC2 need: for the resources that they name or create, and for tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import Need
from localcloud.aws.access import resource_tags
from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall

Keys = Mapping[str, Sequence[str]]
_NUMBER = re.compile(r"\.\d+$")
_SINGULAR = {
    "TagSpecifications": "TagSpecification", "Tags": "Tag", "NetworkInterfaces": "NetworkInterface",
    "SecurityGroupIds": "SecurityGroupId", "Groups": "SecurityGroupId",
}  # fmt: skip
# Parameters that identify a resource in another way than by its id.
_NAMES = ("LaunchTemplateName", "PublicIp", "SecurityGroup", "AssociationId", "Name")
_OF_GROUPS = (
    "AuthorizeSecurityGroupEgress", "AuthorizeSecurityGroupIngress", "DeleteSecurityGroup",
    "RevokeSecurityGroupEgress", "RevokeSecurityGroupIngress", "UpdateSecurityGroupRuleDescriptionsEgress",
    "UpdateSecurityGroupRuleDescriptionsIngress",
)  # fmt: skip
_TAGS = re.compile(r"^TagSpecification\.(\d+)\.")


def needs(call: AwsCall, common: Keys) -> Iterator[Need]:
    """A need for each resource. Its condition keys contain its tags; for a new resource, the tags of the request."""
    action = f"ec2:{call.operation}"
    if call.operation.startswith("Describe") and not call.operation.endswith("Attribute"):
        yield Need(action, "*", common)
        return
    if call.operation in ("CreateTags", "DeleteTags"):
        yield from _tags_of_existing(call, action, common)
        return
    own = _template_parameters(call) if call.operation == "RunInstances" else {}
    parameters = {**own, **{name: value for name, value in call.parameters.items() if isinstance(value, str)}}
    named = list(dict.fromkeys(_named(call, parameters)))
    special = _special(parameters)
    for arn in named:
        yield Need(action, arn, {**common, **special, **resource_tags.keys(arn)})
    # A launch gives the tags of its template and its own.
    given = {**_tags_given(own), **_tags_given(call.parameters)}
    made = table("aws_calls")["ec2"]["makes"].get(call.operation, [])
    for kind in made:
        tags = resource_tags.request_keys(given.get(kind, {}))
        yield Need(action, _arn(call.region, kind, "*"), {**common, **special, **tags})
        if given.get(kind):
            keys = {**common, **tags, "ec2:CreateAction": (call.operation,)}
            yield Need("ec2:CreateTags", _arn(call.region, kind, "*"), keys)
    if not named and not made:
        yield Need(action, "*", {**common, **special})
    if role := _role_passed(parameters):
        yield pass_role_need(role, common)


def pass_role_need(name: str, common: Keys) -> Need:
    """The need to pass a role to EC2."""
    from localcloud.aws.access.policies import role_named

    role = role_named(name)
    arn = role.arn if role is not None else f"arn:aws:iam::{ACCOUNT}:role/{name}"
    return Need("iam:PassRole", arn, {**common, "iam:PassedToService": ("ec2.amazonaws.com",)})


def _named(call: AwsCall, parameters: Mapping[str, str]) -> Iterator[str]:
    types = table("aws_calls")["ec2"]["named"]
    for name, value in parameters.items():
        last = _NUMBER.sub("", name).rpartition(".")[2]
        # Creating a template needs no permission for resources in its data. Launches from it do.
        within = name.startswith(("Filter.", "TagSpecification.", "LaunchTemplateData."))
        if value and last in types and not within:
            yield _arn(call.region, types[last], value)
        elif last in ("ResourceId", "GatewayId") and value:
            yield _by_prefix(call.region, value)
        elif last == "GroupName" and ("Placement" in name or "PlacementGroup" in call.operation):
            if not call.operation.startswith("Create"):
                yield _arn(call.region, "placement-group", value)
        elif value and (last in _NAMES or (name == "GroupName" and call.operation in _OF_GROUPS)):
            yield from resource_tags.by_name(call.region, last, value, call.operation)


def _by_prefix(region: str, identifier: str) -> str:
    kind = table("aws_calls")["ec2"]["prefixes"].get(identifier.partition("-")[0], "unknown")
    if kind == "placement-group":
        identifier = resource_tags.placement_group(region, identifier)
    return _arn(region, kind, identifier)


def _arn(region: str, kind: str, identifier: str) -> str:
    account = "" if kind == "image" else ACCOUNT
    return f"arn:aws:ec2:{region}:{account}:{kind}/{identifier}"


def _tags_of_existing(call: AwsCall, action: str, common: Keys) -> Iterator[Need]:
    tags = resource_tags.request_keys(resource_tags.numbered(call.parameters, "Tag."))
    for name, value in call.parameters.items():
        if name.startswith("ResourceId"):
            arn = _by_prefix(call.region, str(value))
            yield Need(action, arn, {**common, **tags, **resource_tags.keys(arn)})


def _tags_given(parameters: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The tags that a request gives to new resources, by resource type."""
    given: dict[str, dict[str, str]] = {}
    for name, value in parameters.items():
        match = _TAGS.match(name)
        if match and name.endswith(".Key"):
            kind = parameters.get(f"TagSpecification.{match[1]}.ResourceType", "")
            given.setdefault(kind, {})[value] = parameters.get(f"{name[:-3]}Value", "")
    return given


def _special(parameters: Mapping[str, str]) -> dict[str, Sequence[str]]:
    keys: dict[str, Sequence[str]] = {}
    if kind := parameters.get("InstanceType"):
        keys["ec2:InstanceType"] = (kind,)
    if tokens := parameters.get("MetadataOptions.HttpTokens"):
        keys["ec2:MetadataHttpTokens"] = (tokens,)
    return keys


def _role_passed(parameters: Mapping[str, str]) -> str:
    """The role in the instance profile of a launch, or "". Missing profiles are refused later, as by EC2."""
    name = parameters.get("IamInstanceProfile.Name") or parameters.get("IamInstanceProfile.Arn", "").rpartition("/")[2]
    if not name:
        return ""
    from moto.iam.models import iam_backends

    for profile in iam_backends[ACCOUNT]["aws"].instance_profiles.values():
        if profile.name == name and profile.roles:
            return str(profile.roles[0].name)
    return ""


def _template_parameters(call: AwsCall) -> dict[str, str]:
    """The parameters of a launch that are in its launch template, with their names in a request."""
    from moto.ec2.models import ec2_backends

    named = {
        key: call.text(f"LaunchTemplate.{key}") for key in ("LaunchTemplateId", "LaunchTemplateName", "Version")
        if call.text(f"LaunchTemplate.{key}")
    }  # fmt: skip
    if not named:
        return {}
    try:
        data = ec2_backends[ACCOUNT][call.region]._get_template_from_args(named).data
    except Exception:  # moto raises this error again when it gets the call
        return {}
    return dict(_flat("", data))


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """Flattens a template's values to the names of a request: `TagSpecifications` to `TagSpecification.1` and so on."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            singular = _SINGULAR.get(str(name), str(name))
            yield from _flat(f"{prefix}.{singular}" if prefix else singular, item)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _flat(f"{prefix}.{number}", item)
    elif value is not None:
        yield prefix, str(value)
