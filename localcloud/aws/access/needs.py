# SPDX-License-Identifier: Apache-2.0
"""The permissions that a call needs: actions on resources, from the rows of catalog/aws_calls.toml."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import AwsPrincipal, Need
from localcloud.aws.access import ec2_needs, resource_tags, s3_needs
from localcloud.aws.access.policies import role_named
from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall
from localcloud.aws.services import Wire
from localcloud.server import http

_NUMBERED = re.compile(r"^([A-Za-z.]+?)(?:\.member)?(?:\.\d+)?$")


def needs_of_aws_call(call: AwsCall, principal: AwsPrincipal) -> list[Need]:
    """All actions and resources that must be allowed; none if the call needs no permission."""
    common, rows = common_keys(call, principal), table("aws_calls")
    own = f"{call.service.prefix}:{call.operation}"
    if call.service.wire is Wire.S3:
        needs = list(s3_needs.s3_needs(call, common))
    elif call.service.wire is Wire.EC2:
        needs = list(ec2_needs.ec2_needs(call, common))
    elif rows["actions"].get(call.service.prefix, {}).get(call.operation) == []:
        return []
    else:
        keys = {**common, **_request_tags(call), **special_keys(call)}
        needs = [Need(own, arn, {**keys, **resource_tags.resource_tag_keys(arn)}) for arn in call_resources(call)]
    for member, action in rows["also"].get(call.name, {}).items():
        if _gives_member(call, member):
            also = (
                Need(action, rows["also_on"].get(action, need.resource), need.keys)
                for need in needs
                if need.action == own
            )
            needs += {need.resource: need for need in also}.values()
    if call.name == "iam.AddRoleToInstanceProfile":
        arn = f"arn:aws:iam::{ACCOUNT}:role/{call.text('RoleName')}"
        needs.append(ec2_needs.pass_role_need(resource_tags.full_arn(arn, call.region), common))
    return needs


def _gives_member(call: AwsCall, member: str) -> bool:
    """Whether a call gives a member of its model, in a form of any service. A switch that is off is not given."""
    document = call.document if isinstance(call.document, Mapping) else {}
    value = call.parameters.get(member) or document.get(member)
    return (bool(value) and value != "false") or any(name.startswith(f"{member}.") for name in call.parameters)


def call_resources(call: AwsCall) -> list[str]:
    """The resources of a call; `*` if no row of the catalog names any."""
    arns: list[str] = []
    for row in table("aws_calls")["resource"]:
        named = "*" in row["operations"] or call.operation in row["operations"]
        if row["service"] == call.service.prefix and named and call.operation not in row.get("except", ()):
            arns += _arns_of_row(row, call)
    if call.name == "ssm.SendCommand":
        arns += _tagged_targets(call)
    if call.name in ("kms.Decrypt", "kms.ReEncrypt"):
        arns += _key_of_ciphertext(call)
    if call.name in ("iam.UpdateUser", "iam.UpdateGroup"):
        # Also the ARN of the user or group under its new path and name.
        for kind, _, rest in [arn.rpartition(":")[2].partition("/") for arn in arns]:
            path, _, name = f"/{rest}".rpartition("/")
            path, name = call.text("NewPath") or f"{path}/", call.text(f"New{kind.title()}Name") or name
            arns.append(f"arn:aws:iam::{ACCOUNT}:{kind}{path}{name}")
    return list(dict.fromkeys(arns)) or ["*"]


def _arns_of_row(row: Mapping[str, Any], call: AwsCall) -> Iterator[str]:
    texts = {name: value for name, value in call.parameters.items() if isinstance(value, str)}
    path = call.text("Path").lstrip("/") if call.operation.startswith("Create") else ""
    values: Mapping[str, str] = {"logStreamName": "", **texts, "region": call.region, "account": ACCOUNT, "path": path}
    if not row["parameters"]:
        yield _fill_pattern(row["arn"], {**values, "value": ""})
    for name in row["parameters"]:
        for value in parameter_texts(call, name):
            if value.startswith("arn:"):
                yield resource_tags.full_arn(value, call.region)
            else:
                bare = value.removeprefix(row.get("strip", "\0"))
                yield resource_tags.full_arn(_fill_pattern(row["arn"], {**values, "value": bare}), call.region)


def _fill_pattern(pattern: str, values: Mapping[str, str]) -> str:
    """Fills in a pattern. `str.format` would also let it access attributes of values."""
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], pattern)


def parameter_texts(call: AwsCall, name: str) -> list[str]:
    """The values of a parameter that is a text, a list in JSON, or numbered in a query."""
    if call.service.wire is Wire.JSON:
        value = call.parameters.get(name)
        return [value] if isinstance(value, str) else [one for one in value or () if isinstance(one, str)]
    return [text for key, text in call.parameters.items() if (match := _NUMBERED.match(key)) and match[1] == name]


def _tagged_targets(call: AwsCall) -> Iterator[str]:
    """The ARNs of the instances that a command's targets select. If a target selects none: the ARN for all
    instances."""
    from localcloud.aws.additions import commands, machine_view

    targets = call.parameters.get("Targets")
    for row in targets if isinstance(targets, list) else ():
        key, values = str(row.get("Key")), [str(one) for one in row.get("Values", [])]
        ids = values if key == "InstanceIds" else [
            one.id for one in machine_view.living_instances(call.region)
            if key.startswith("tag:") and commands.has_tag(one, {"Key": key, "Values": values})
        ]  # fmt: skip
        yield from (f"arn:aws:ec2:{call.region}:{ACCOUNT}:instance/{one}" for one in ids or ["*"])


def _key_of_ciphertext(call: AwsCall) -> Iterator[str]:
    """The ARN of the key that moto decrypts with. A caller need not name it."""
    from moto.kms.utils import _deserialize_ciphertext_blob

    try:
        identifier = _deserialize_ciphertext_blob(b64decode(call.text("CiphertextBlob"))).key_id
    except Exception:  # moto refuses it, too
        return
    yield f"arn:aws:kms:{call.region}:{ACCOUNT}:key/{identifier}"


def _request_tags(call: AwsCall) -> dict[str, Sequence[str]]:
    """The keys for tags that a call gives, and the keys of tags that it removes."""
    if call.service.wire is not Wire.JSON:
        removed = parameter_texts(call, "TagKeys")
        return resource_tags.request_keys(resource_tags.numbered_tags(call.parameters, "Tags.member."), removed)
    given: Any = call.parameters.get("Tags", call.parameters.get("tags")) or ()
    rows = [{"Key": key, "Value": value} for key, value in given.items()] if isinstance(given, Mapping) else given
    pairs = dict(resource_tags.tag_pair(row) for row in rows)
    removed = [text for name in ("TagKeys", "tagKeys") for text in parameter_texts(call, name)]
    return resource_tags.request_keys(pairs, removed)


def special_keys(call: AwsCall) -> dict[str, Sequence[str]]:
    """The condition keys of a service's own calls."""
    keys: dict[str, Sequence[str]] = {}
    if call.service.prefix == "iam":
        # The boundary that a role gets, else that which it has.
        own = getattr(role_named(call.text("RoleName")), "permissions_boundary_arn", "")
        named = {
            "iam:PolicyARN": call.text("PolicyArn"), "iam:AWSServiceName": call.text("AWSServiceName"),
            "iam:PermissionsBoundary": call.text("PermissionsBoundary") or own,
        }  # fmt: skip
        keys |= {key: (value,) for key, value in named.items() if value}
    if call.name == "sts.AssumeRole":
        keys["sts:RoleSessionName"] = (call.text("RoleSessionName"),)
        if call.text("ExternalId"):
            keys["sts:ExternalId"] = (call.text("ExternalId"),)
    return keys


def common_keys(call: AwsCall, principal: AwsPrincipal) -> dict[str, Sequence[str]]:
    """The condition keys of every call."""
    now = datetime.fromtimestamp(http.current_moment(), UTC)
    keys: dict[str, Sequence[str]] = {
        # Requests do not leave this machine, so for policies they count as sent over TLS.
        "aws:SecureTransport": ("true",), "aws:RequestedRegion": (call.region,),
        "aws:PrincipalArn": (principal.identity_arn,),
        "aws:PrincipalAccount": (ACCOUNT,), "aws:ResourceAccount": (ACCOUNT,), "aws:SourceIp": ("127.0.0.1",),
        "aws:CurrentTime": (now.isoformat(),), "aws:EpochTime": (str(int(now.timestamp())),),
        "aws:PrincipalType": ("User" if principal.user else "AssumedRole",), "aws:ViaAWSService": ("false",),
        "aws:userid": (principal.id,), **{f"aws:PrincipalTag/{name}": (value,) for name, value in principal.tags},
    }  # fmt: skip
    if principal.user:
        keys["aws:username"] = (principal.user,)
    if principal.since:
        keys["aws:TokenIssueTime"] = (principal.since,)
    return keys
