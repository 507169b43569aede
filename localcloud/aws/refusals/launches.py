# SPDX-License-Identifier: Apache-2.0
"""Refuses values of launches: user data, tags that the metadata service cannot serve, instance profiles, and network
interfaces."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.calls import AwsCall

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
        found = [instance for one in named if (instance := _existing_instance(call.region, one)) is not None]
        if any(instance.metadata_options.instance_metadata_tags == "enabled" for instance in found):
            _check_tags(
                str(value) for name, value in call.parameters.items() if re.fullmatch(r"Tag\.\d+\.Key", name)
            )  # fmt: skip
    if call.operation == "ModifyInstanceMetadataOptions" and call.text("InstanceMetadataTags") == "enabled":
        instance = _existing_instance(call.region, call.text("InstanceId"))
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
    from moto.ec2.models import ec2_backends

    backend = ec2_backends[ACCOUNT][call.region]
    identifier, name, version = (
        call.text(f"LaunchTemplate.{member}") for member in ("LaunchTemplateId", "LaunchTemplateName", "Version")
    )
    if version and not identifier and not name:
        raise _launch_refusal(
            "MissingParameter", "The request must contain a launch template ID or a launch template name"
        )
    if identifier and identifier not in backend.launch_templates:
        raise _launch_refusal("InvalidLaunchTemplateId.NotFound", f"The specified launch template, with template ID"
                       f" {identifier}, does not exist.")  # fmt: skip
    if identifier and name:
        raise _launch_refusal(
            "InvalidParameterCombination",
            "The parameter 'launchTemplateName' may not be used in combination with 'launchTemplateId'",
        )
    if version and not _VERSION.fullmatch(version):
        raise _launch_refusal(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find the specified version {version} for the launch template with ID {identifier or name}.",
        )


def _check_user_data(text: str, code: str) -> None:
    try:
        length = len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        message = "Invalid BASE64 encoding of user data."
        raise RefusalError(Reason.REFUSED, message, "InvalidUserData.Malformed") from None
    if length > MOST_USER_DATA:
        raise RefusalError(Reason.REFUSED, f"User data is limited to {MOST_USER_DATA} bytes", code)


def _check_tags(keys: Iterable[str]) -> None:
    for key in keys:
        if not _TAG_KEY.fullmatch(key) or key in _RESERVED:
            raise RefusalError(
                Reason.REFUSED,
                f"'{key}' is not a valid tag key. Tag keys must match pattern ({_TAG_KEY.pattern}), and must not be a"
                " reserved name ('.', '..', '_index')",
            )


def _check_profile(name: str, arn: str) -> None:
    """Refuses a profile with two names, a missing one, and one without a role. The messages be AWS's, because
    clients retry on it: EC2 sees a new profile only after a moment."""
    if name and arn:
        raise _launch_refusal(
            "InvalidParameterCombination",
            "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'",
        )
    from moto.iam.models import iam_backends

    for profile in iam_backends[ACCOUNT]["aws"].instance_profiles.values():
        if profile.name == name or profile.arn == arn:
            if not profile.roles:
                message = f'IAM Instance Profile "{profile.arn}" has no associated IAM Roles'
                raise RefusalError(Reason.REFUSED, message)
            return
    value, what, kind = (arn, "arn", "ARN") if arn else (name, "name", "name")
    message = f"Value ({value}) for parameter iamInstanceProfile.{what} is invalid. Invalid IAM Instance Profile {kind}"
    raise RefusalError(Reason.REFUSED, message)


def _existing_instance(region: str, identifier: str) -> Any:
    from moto.ec2.models import ec2_backends

    return next((one for one in ec2_backends[ACCOUNT][region].all_instances() if one.id == identifier), None)


def check_interfaces(kind: str, wanted: dict[str, Any]) -> None:
    """Refuses network interfaces that the instance type does not support."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    if interfaces := wanted.get("NetworkInterfaces", []):
        if wanted.get("SubnetId") or wanted.get("SecurityGroupIds"):
            raise _launch_refusal(
                "InvalidParameterCombination",
                "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same"
                " request",
            )
        network = INSTANCE_TYPES[kind]["NetworkInfo"]
        most = network["MaximumNetworkInterfaces"]
        cards = network.get("NetworkCards", [{"MaximumNetworkInterfaces": most}])
        problems = chain(
            _place_problems(kind, most, cards, interfaces), _efa_problems(kind, network, cards, interfaces)
        )
        if problem := next(problems, None):
            raise _launch_refusal(*problem)


def _place_problems(kind: str, most: int, cards: _Rows, interfaces: _Rows) -> Iterator[tuple[str, str]]:
    """The codes and messages with which AWS refuses places on network cards, in its order."""
    if len(interfaces) > most:
        yield "AttachmentLimitExceeded", f"Interface count {len(interfaces)} exceeds the limit for {kind}: {most}"
    places = Counter((int(one.get("NetworkCardIndex") or 0), int(one.get("DeviceIndex") or 0)) for one in interfaces)
    for (card, device), count in places.items():
        if not 0 <= card < len(cards):
            message = f"The network card index {card} is not valid for {kind}: it has {len(cards)} network cards"
            yield "InvalidParameterValue", message
        elif device >= (devices := cards[card]["MaximumNetworkInterfaces"]):
            yield (
                "InvalidParameterValue",
                f"The specified number '{device}' for the device index exceeds the maximum number of network"
                f" interfaces supported by the network card at network card index {card}. The maximum devices for this"
                f" network card is {devices}. Specify a number from 0 to {devices - 1}, and try again.",
            )
        elif count > 1:
            message = f"The device index {device} on network card {card} is used by more than one network interface"
            yield "InvalidParameterValue", message
    if (0, 0) not in places:
        message = "A primary network interface with device index 0 on network card 0 is required"
        yield "InvalidParameterCombination", message
    if len(interfaces) > 1 and any(one.get("AssociatePublicIpAddress") for one in interfaces):
        yield (
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network"
            " interfaces.",
        )


def _efa_problems(kind: str, network: Mapping[str, Any], cards: _Rows, interfaces: _Rows) -> Iterator[tuple[str, str]]:
    fast = Counter[int]()
    for interface in interfaces:
        card, device = (int(interface.get(name) or 0) for name in ("NetworkCardIndex", "DeviceIndex"))
        sort = interface.get("InterfaceType") or "interface"
        if sort not in _KINDS:
            yield "InvalidParameterValue", f"Invalid value '{sort}' for InterfaceType."
        if sort == "efa-only" and (card, device) == (0, 0):
            yield "InvalidParameterValue", "An EFA-only interface cannot be the primary network interface"
        fast[card] += sort != "interface"
    if fast.total() and not network.get("EfaSupported"):
        yield "InvalidParameterCombination", f"The instance type {kind} does not support EFA interfaces"
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    for card, count in fast.items():
        if count and not {"efa", "efa-only"} & {*cards[card]["InterfaceTypes"]}:
            yield "InvalidParameterValue", f"Network card {card} of {kind} does not support EFA"
        elif fast.total() > most:
            message = f"EFA interface count {fast.total()} exceeds the limit for {kind}: {most}"
            yield "AttachmentLimitExceeded", message
        elif count > 1:
            yield "InvalidParameterValue", f"Only one EFA interface is allowed on network card {card}"


def _launch_refusal(code: str, message: str) -> RefusalError:
    return RefusalError(Reason.REFUSED, message, code)
