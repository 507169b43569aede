# SPDX-License-Identifier: Apache-2.0
"""The permissions that calls of EC2 need: for the resources that they name or create, and for tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from catalog.tables import table
from components.aws.iam.decide import Need
from localcloud.aws.access import resource_tags
from localcloud.aws.access.ec2_resources import arn_of, arns_by_id, named_resources
from localcloud.aws.access.policies import named_instance_profiles, role_named
from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall
from localcloud.aws.launch_templates import tags_given

Keys = Mapping[str, Sequence[str]]
SPOT_SERVICE, SPOT_ROLE = "spot.amazonaws.com", "AWSServiceRoleForEC2Spot"


def ec2_needs(call: AwsCall, common: Keys) -> Iterator[Need]:
    """A need for each resource. Its condition keys contain its tags; for a new resource, the tags of the request. A
    launch already has the parameters of its template."""
    action = f"ec2:{call.operation}"
    common = {**common, "ec2:Region": (call.region,)}
    if call.operation.startswith("Describe") and not call.operation.endswith("Attribute"):
        yield Need(action, "*", common)
        return
    if call.operation in ("CreateTags", "DeleteTags"):
        yield from _tags_of_existing(call, action, common)
        return
    named = named_resources(call)
    # Also the keys of EC2's own defaults: a policy may deny what the caller did not write.
    launches = call.operation == "RunInstances"
    special: dict[str, Sequence[str]] = {}
    if kind := call.text("InstanceType") or ("m1.small" if launches else ""):
        special["ec2:InstanceType"] = (kind,)
    if tokens := call.text("MetadataOptions.HttpTokens") or call.text("HttpTokens") or ("optional" if launches else ""):
        special["ec2:MetadataHttpTokens"] = (tokens,)
    for arn in named:
        yield Need(action, arn, {**common, **special, **resource_tags.resource_tag_keys(arn)})
    given = tags_given(call.parameters)
    made = list(dict.fromkeys([*table("aws_calls")["ec2"]["makes"].get(call.operation, []), *given]))
    for kind in made:
        tags = resource_tags.request_keys(given.get(kind, {}))
        yield Need(action, arn_of(call.region, kind, "*"), {**common, **special, **tags})
        if kind in given:
            keys = {**common, **tags, "ec2:CreateAction": (call.operation,)}
            yield Need("ec2:CreateTags", arn_of(call.region, kind, "*"), keys)
    if not named and not made:
        yield Need(action, "*", {**common, **special})
    for role, service in _roles_passed(call):
        yield pass_role_need(role, common, service)
    if launches and call.text("InstanceMarketOptions.MarketType") == "spot" and role_named(SPOT_ROLE) is None:
        # The account's first spot launch makes EC2's role for them, in the caller's name.
        arn = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{SPOT_SERVICE}/{SPOT_ROLE}"
        yield Need("iam:CreateServiceLinkedRole", arn, {**common, "iam:AWSServiceName": (SPOT_SERVICE,)})


def pass_role_need(arn: str, common: Keys, service: str = "ec2.amazonaws.com") -> Need:
    """The need to pass a role to a service."""
    return Need("iam:PassRole", arn, {**common, "iam:PassedToService": (service,)})


def _tags_of_existing(call: AwsCall, action: str, common: Keys) -> Iterator[Need]:
    tags = resource_tags.request_keys(resource_tags.numbered_tags(call.parameters, "Tag."))
    for name, value in call.parameters.items():
        if name.startswith("ResourceId"):
            for arn in arns_by_id(call.region, str(value)):
                yield Need(action, arn, {**common, **tags, **resource_tags.resource_tag_keys(arn)})


def _roles_passed(call: AwsCall) -> Iterator[tuple[str, str]]:
    """The ARNs of the roles that a call gives to a service, and the service. A missing profile is refused later, as by
    EC2."""
    for profile in named_instance_profiles(call.text("IamInstanceProfile.Name"), call.text("IamInstanceProfile.Arn")):
        yield from ((str(role.arn), "ec2.amazonaws.com") for role in profile.roles)
    for parameter, service in table("aws_calls")["ec2"]["passes"].items():
        if role := call.text(parameter):
            yield role, service
