# SPDX-License-Identifier: Apache-2.0
"""Refuses values of launches: user data, tags that the metadata service cannot serve, and instance profiles."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall
from localcloud.aws.errors import Reason, RefusalError

MOST_USER_DATA = 16_384
_TAG_KEY = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}")
_RESERVED = (".", "..", "_index")
_OF_PROFILES = ("AssociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation")
_OF_TEMPLATES = ("CreateLaunchTemplate", "CreateLaunchTemplateVersion")


def refuse(call: AwsCall) -> None:
    """Raises EC2's refusals of calls that name such values outside of a launch."""
    if call.operation in _OF_TEMPLATES:
        _check_user_data(call.text("LaunchTemplateData.UserData"), "InvalidUserData.Malformed")
    if call.operation in _OF_PROFILES:
        _check_profile(call.text("IamInstanceProfile.Name"), call.text("IamInstanceProfile.Arn"))
    if call.operation == "CreateTags":
        named = [str(value) for name, value in call.parameters.items() if name.startswith("ResourceId.")]
        if any(_shows_tags(call.region, one) for one in named):
            _check_tags(
                str(value) for name, value in call.parameters.items() if re.fullmatch(r"Tag\.\d+\.Key", name)
            )  # fmt: skip
    if call.operation == "ModifyInstanceMetadataOptions" and call.text("InstanceMetadataTags") == "enabled":
        _check_tags(_tags_of(call.region, call.text("InstanceId")))


def check_launch(wanted: Mapping[str, Any]) -> None:
    """Raises EC2's refusals of a launch, with the values of its template."""
    _check_user_data(str(wanted.get("UserData") or ""), "InvalidParameterValue")
    if wanted.get("MetadataOptions", {}).get("InstanceMetadataTags") == "enabled":
        rows = [row for row in wanted.get("TagSpecifications", []) if row.get("ResourceType") == "instance"]
        _check_tags(str(tag["Key"]) for row in rows for tag in row.get("Tags", []))
    if profile := wanted.get("IamInstanceProfile"):
        _check_profile(profile.get("Name") or "", profile.get("Arn") or "")


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
    """Refuses a profile that does not exist. The message is AWS's own, because clients retry on it: EC2 sees a new
    profile only after a moment."""
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


def _instance(region: str, identifier: str) -> Any:
    from moto.ec2.models import ec2_backends

    return next((one for one in ec2_backends[ACCOUNT][region].all_instances() if one.id == identifier), None)


def _shows_tags(region: str, identifier: str) -> bool:
    instance = _instance(region, identifier)
    return instance is not None and instance.metadata_options.instance_metadata_tags == "enabled"


def _tags_of(region: str, identifier: str) -> list[str]:
    instance = _instance(region, identifier)
    return [str(tag["key"]) for tag in instance.get_tags()] if instance is not None else []
