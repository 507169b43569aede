# SPDX-License-Identifier: Apache-2.0
"""Refuses values of launches: user data, tags that the metadata service cannot serve, instance profiles, and network
interfaces."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localcloud.aws.access.policies import named_instance_profiles
from localcloud.aws.additions import machine_view
from localcloud.aws.aws_errors import aws_refusal
from localcloud.aws.calls import AwsCall
from localcloud.aws.moto_state import moto_backend

MOST_USER_DATA = 16_384
_TAG_KEY = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}")
_VERSION = re.compile(r"\$(?i:latest|default)|[1-9][0-9]{0,9}", re.ASCII)
_RESERVED = (".", "..", "_index")
_OF_PROFILES = ("AssociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation")
_OF_TEMPLATES = ("CreateLaunchTemplate", "CreateLaunchTemplateVersion")
_KINDS = ("interface", "efa", "efa-only")
_Rows = Sequence[Mapping[str, Any]]


def refuse_launch_values(call: AwsCall) -> None:
    """Refuses invalid user data, profiles and tags in other calls than RunInstances, and the name of its template."""
    if call.operation in _OF_TEMPLATES:
        _check_user_data(call.text("LaunchTemplateData.UserData"), "InvalidUserData.Malformed")
    if call.operation == "RunInstances":
        _check_template(call)
    if call.operation in _OF_PROFILES:
        _check_profile(call.text("IamInstanceProfile.Name"), call.text("IamInstanceProfile.Arn"))
    if call.operation == "CreateTags":
        named = [str(value) for name, value in call.parameters.items() if name.startswith("ResourceId.")]
        found = [instance for one in named if (instance := machine_view.find_instance(one)) is not None]
        if any(instance.metadata_options.instance_metadata_tags == "enabled" for instance in found):
            _check_tags(
                str(value) for name, value in call.parameters.items() if re.fullmatch(r"Tag\.\d+\.Key", name)
            )  # fmt: skip
    if call.operation == "ModifyInstanceMetadataOptions" and call.text("InstanceMetadataTags") == "enabled":
        instance = machine_view.find_instance(call.text("InstanceId"))
        _check_tags([str(tag["key"]) for tag in instance.get_tags()] if instance is not None else [])


def check_launch(wanted: Mapping[str, Any]) -> None:
    """Refuses a launch by its values, which include those of its launch template."""
    _check_user_data(str(wanted.get("UserData") or ""), "InvalidParameterValue")
    if wanted.get("MetadataOptions", {}).get("InstanceMetadataTags") == "enabled":
        rows = [row for row in wanted.get("TagSpecifications", []) if row.get("ResourceType") == "instance"]
        _check_tags(str(tag["Key"]) for row in rows for tag in row.get("Tags", []))
    if profile := wanted.get("IamInstanceProfile"):
        _check_profile(profile.get("Name") or "", profile.get("Arn") or "")


def _check_template(call: AwsCall) -> None:
    """Refuses a launch template with two names, a missing one, and an impossible version."""
    backend = moto_backend("ec2", call.region)
    identifier, name, version = (
        call.text(f"LaunchTemplate.{member}") for member in ("LaunchTemplateId", "LaunchTemplateName", "Version")
    )
    if version and not identifier and not name:
        raise aws_refusal("template unnamed")
    if identifier and identifier not in backend.launch_templates:
        raise aws_refusal("template unknown", template=identifier)
    if identifier and name:
        raise aws_refusal("template named twice")
    if version and not _VERSION.fullmatch(version):
        raise aws_refusal("template version", version=version, template=identifier or name)


def _check_user_data(text: str, code: str) -> None:
    try:
        length = len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise aws_refusal("user data encoding") from None
    if length > MOST_USER_DATA:
        raise aws_refusal("user data length", code=code, most=MOST_USER_DATA)


def _check_tags(keys: Iterable[str]) -> None:
    for key in keys:
        if not _TAG_KEY.fullmatch(key) or key in _RESERVED:
            raise aws_refusal("metadata tag", key=key, pattern=_TAG_KEY.pattern)


def _check_profile(name: str, arn: str) -> None:
    """Refuses a profile with two names, a missing one, and one without a role. The messages be AWS's, because
    clients retry on it: EC2 sees a new profile only after a moment."""
    if name and arn:
        raise aws_refusal("profile named twice")
    profiles = named_instance_profiles(name, arn)
    if not profiles:
        value, member, words = (arn, "arn", "ARN") if arn else (name, "name", "name")
        raise aws_refusal("profile unknown", value=value, member=member, words=words)
    if not profiles[0].roles:
        raise aws_refusal("profile without role", arn=profiles[0].arn)


def check_interfaces(kind: str, wanted: dict[str, Any]) -> None:
    """Refuses network interfaces that the instance type does not support."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    if interfaces := wanted.get("NetworkInterfaces", []):
        if wanted.get("SubnetId") or wanted.get("SecurityGroupIds"):
            raise aws_refusal("interfaces and subnet")
        network = INSTANCE_TYPES[kind]["NetworkInfo"]
        most = network["MaximumNetworkInterfaces"]
        cards = network.get("NetworkCards", [{"MaximumNetworkInterfaces": most}])
        _check_places(kind, most, cards, interfaces)
        _check_efa(kind, network, cards, interfaces)


def _check_places(kind: str, most: int, cards: _Rows, interfaces: _Rows) -> None:
    """Refuses places on network cards, in AWS's order."""
    if len(interfaces) > most:
        raise aws_refusal("interface count", count=len(interfaces), kind=kind, most=most)
    places = Counter((int(one.get("NetworkCardIndex") or 0), int(one.get("DeviceIndex") or 0)) for one in interfaces)
    for (card, device), count in places.items():
        if not 0 <= card < len(cards):
            raise aws_refusal("network card", card=card, kind=kind, cards=len(cards))
        if device >= (devices := cards[card]["MaximumNetworkInterfaces"]):
            raise aws_refusal("device index", device=device, card=card, devices=devices, last=devices - 1)
        if count > 1:
            raise aws_refusal("device index twice", device=device, card=card)
    if (0, 0) not in places:
        raise aws_refusal("interface primary")
    if len(interfaces) > 1 and any(one.get("AssociatePublicIpAddress") for one in interfaces):
        raise aws_refusal("interface address")


def _check_efa(kind: str, network: Mapping[str, Any], cards: _Rows, interfaces: _Rows) -> None:
    fast = Counter[int]()
    for interface in interfaces:
        card, device = (int(interface.get(name) or 0) for name in ("NetworkCardIndex", "DeviceIndex"))
        sort = interface.get("InterfaceType") or "interface"
        if sort not in _KINDS:
            raise aws_refusal("interface type", value=sort)
        if sort == "efa-only" and (card, device) == (0, 0):
            raise aws_refusal("efa primary")
        fast[card] += sort != "interface"
    if fast.total() and not network.get("EfaSupported"):
        raise aws_refusal("efa machine", kind=kind)
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    for card, count in fast.items():
        if count and not {"efa", "efa-only"} & {*cards[card]["InterfaceTypes"]}:
            raise aws_refusal("efa card", card=card, kind=kind)
        if fast.total() > most:
            raise aws_refusal("efa count", count=fast.total(), kind=kind, most=most)
        if count > 1:
            raise aws_refusal("efa card twice", card=card)
