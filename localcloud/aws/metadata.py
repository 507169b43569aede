# SPDX-License-Identifier: Apache-2.0
"""The instance metadata service, version 2: identity, tags, and temporary credentials of the instance's role.

On AWS it has a link-local address. Here an environment variable leads the clients on an instance to the cloud's
endpoint. The path contains a secret key of the instance, which identifies it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcloud.aws.access.policies import named_instance_profiles
from localcloud.aws.account import ACCOUNT, aws_folder
from localcloud.aws.additions import machine_view
from localcloud.aws.identities import role_of_session
from localcloud.aws.moto_state import moto_backend
from localcloud.files import write_secret
from localcloud.server import http
from localcloud.server.http import Reply, Request

PATH = "/.trainyard/metadata/"
_TTL = "x-aws-ec2-metadata-token-ttl-seconds"
_TOKEN = "x-aws-ec2-metadata-token"
_LONGEST_SECONDS = 21_600
# The lifetime of new credentials. They are renewed when a third of it remains.
SESSION_SECONDS = 3600.0
_RENEWED_AT = 1 / 3
_NOTICE_SECONDS = 120


@dataclass
class Metadata:
    """Answers requests. `session_seconds`: the lifetime of credentials, which a fault may shorten. `spot_notice`:
    whether a fault takes spot instances of a type back."""

    home: Path
    may_assume: Callable[[Any], bool]
    session_seconds: Callable[[], float]
    spot_notice: Callable[[str], bool] = lambda kind: False
    _tokens: dict[str, tuple[str, float]] = field(default_factory=dict)

    def path_of(self, instance: str) -> str:
        return f"{PATH}{self._key_of(instance)}"

    def _key_of(self, instance: str) -> str:
        path = aws_folder(self.home) / "metadata.key"
        if not path.exists():
            write_secret(path, secrets.token_bytes(32))
        return hmac.new(path.read_bytes(), instance.encode(), hashlib.sha256).hexdigest()[:40]

    def answer(self, request: Request) -> tuple[Reply, str]:
        """The reply, and its summary for the log. A wrong key gets the same reply as a wrong path."""
        key, _, path = request.path.removeprefix(PATH).partition("/")
        instance = next(
            (one for one in machine_view.active_instances() if hmac.compare_digest(self._key_of(one.id), key)), None
        )
        if instance is None or instance.metadata_options.http_endpoint == "disabled":
            return _text_reply(404, ""), "metadata: no such instance"
        if path == "latest/api/token":
            return self._new_token(request, instance), f"metadata token for {instance.id}"
        if request.method not in ("GET", "HEAD"):
            return _text_reply(405, ""), f"metadata: {request.method}"
        if not self._may_read(request, instance):
            return _text_reply(401, ""), f"metadata of {instance.id}: no token"
        content = self._content(instance, path.strip("/"))
        reply = _text_reply(200, content) if content is not None else _text_reply(404, "")
        return reply, f"metadata of {instance.id}"

    def _new_token(self, request: Request, instance: Any) -> Reply:
        text = request.headers.get(_TTL, "")
        if request.method != "PUT":
            return _text_reply(405, "")
        if not text.isdecimal() or not 0 < int(text[:8]) <= _LONGEST_SECONDS or "x-forwarded-for" in request.headers:
            return _text_reply(400, "")
        now = http.current_moment()
        self._tokens = {token: row for token, row in self._tokens.items() if row[1] > now}
        token = secrets.token_urlsafe(40)
        self._tokens[token] = (instance.id, now + int(text))
        return Reply(200, content=token.encode(), headers={"content-type": "text/plain", _TTL: text})

    def _may_read(self, request: Request, instance: Any) -> bool:
        token = request.headers.get(_TOKEN)
        if token is None:
            return bool(instance.metadata_options.http_tokens != "required")
        owner, ends = self._tokens.get(token, ("", 0.0))
        return owner == instance.id and ends > http.current_moment()

    def _content(self, instance: Any, path: str) -> str | None:
        if path == "latest/user-data":
            return None if instance.user_data is None else str(instance.user_data.decode())
        if path == "latest/dynamic/instance-identity/document":
            return json.dumps({
                "accountId": ACCOUNT, "architecture": instance.architecture,
                "availabilityZone": instance.availability_zone, "imageId": instance.image_id,
                "instanceId": instance.id, "instanceType": instance.instance_type, "privateIp": instance.private_ip,
                "region": instance.ec2_backend.region_name, "version": "2017-09-30",
            })  # fmt: skip
        if not (path == "latest/meta-data" or path.startswith("latest/meta-data/")):
            return {"": "latest", "latest": "dynamic\nmeta-data\nuser-data"}.get(path)
        if path == "latest/meta-data/spot/instance-action":
            return self._spot_action(instance)
        return _read_path(self._tree(instance), path.removeprefix("latest/meta-data").strip("/"))

    def _spot_action(self, instance: Any) -> str | None:
        """AWS's notice, two minutes before it takes a spot instance back."""
        if instance.lifecycle != "spot" or not self.spot_notice(instance.instance_type):
            return None
        return json.dumps({"action": "terminate", "time": http.format_rfc3339(http.current_moment() + _NOTICE_SECONDS)})

    def _tree(self, instance: Any) -> dict[str, Any]:
        nic = instance.nics[0]
        tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
        interfaces = {
            each.mac_address: {
                "device-number": str(each.device_index or 0),
                "network-card": str(getattr(each, "network_card_index", 0)),
                "interface-id": each.id,
                "local-ipv4s": each.private_ip_address,
                "mac": each.mac_address,
                "subnet-id": each.subnet.id,
                "vpc-id": each.subnet.vpc_id,
                "subnet-ipv4-cidr-block": each.subnet.cidr_block,
                "security-group-ids": "\n".join(sorted(group.id for group in each.group_set)),
            }
            for each in instance.nics.values()
        }
        tree: dict[str, Any] = {
            "ami-id": instance.image_id, "instance-id": instance.id, "instance-type": instance.instance_type,
            "ami-launch-index": str(instance.ami_launch_index), "mac": nic.mac_address,
            "hostname": instance.private_dns_name, "local-hostname": instance.private_dns_name,
            "local-ipv4": instance.private_ip, "instance-life-cycle": instance.lifecycle or "on-demand",
            "security-groups": "\n".join(sorted(group.name for group in nic.group_set)),
            "placement": {
                "availability-zone": instance.availability_zone, "region": instance.ec2_backend.region_name,
                **({"group-name": instance.placement.group_name} if instance.placement.group_name else {}),
            },
            "network": {"interfaces": {"macs": interfaces}},
        }  # fmt: skip
        if nic.public_ip:
            tree["public-ipv4"] = nic.public_ip
        if instance.metadata_options.instance_metadata_tags == "enabled":
            tree["tags"] = {"instance": {name: text for name, text in tags.items() if not name.startswith("aws:")}}
        if role := role_of(instance):
            tree["iam"] = {
                "info": lambda: json.dumps({
                    "Code": "Success", "InstanceProfileArn": instance.iam_instance_profile["Arn"],
                    "InstanceProfileId": instance.iam_instance_profile["Id"],
                }),
                "security-credentials": {role.name: lambda: json.dumps(self._credentials(instance, role))},
            }  # fmt: skip
        return tree

    def _credentials(self, instance: Any, role: Any) -> Mapping[str, str]:
        if not self.may_assume(role):
            message = "EC2 cannot assume the role of this instance: its trust policy does not allow it."
            return {"Code": "AssumeRoleUnauthorizedAccess", "Message": message}
        session = _session_of(instance, role, self.session_seconds())
        return {
            "Code": "Success", "Type": "AWS-HMAC", "LastUpdated": _metadata_date(session.trainyard_since),
            "AccessKeyId": session.access_key_id, "SecretAccessKey": session.secret_access_key,
            "Token": session.session_token, "Expiration": _metadata_date(session.expiration.timestamp()),
        }  # fmt: skip


def role_of(instance: Any) -> Any:
    """The role in an instance's instance profile, or None."""
    profiles = named_instance_profiles("", (instance.iam_instance_profile or {}).get("Arn", ""))
    return next((profile.roles[0] for profile in profiles if profile.roles), None)


def _session_of(instance: Any, role: Any, seconds: float) -> Any:
    """The instance's credentials. Replaces them if they expire soon, and removes expired credentials of all
    instances."""
    now = http.current_moment()
    session = getattr(instance, "trainyard_session", None)
    left = session.expiration.timestamp() - now if session else 0.0
    known = moto_backend("sts").get_assumed_role_from_access_key
    valid = session and role_of_session(session) is role and known(session.access_key_id)
    if valid and _RENEWED_AT * seconds < left <= seconds:
        return session
    backend = moto_backend("sts")
    ended = [one for one in backend.assumed_roles if one.expiration.timestamp() < now]
    backend.assumed_roles = [one for one in backend.assumed_roles if one not in ended]
    for one in ended:
        moto_backend("iam").access_keys.pop(one.access_key_id, None)
    instance.trainyard_session = backend.assume_role(
        region_name=instance.ec2_backend.region_name, role_session_name=instance.id, role_arn=role.arn, policy="",
        duration=seconds, external_id="",
    )  # fmt: skip
    return instance.trainyard_session


def _read_path(tree: Mapping[str, Any], path: str) -> str | None:
    """The content at a path: a value, or a list of the names below it. The whole path is tried as a name first, because
    the name of a tag may contain slashes."""
    if not path:
        return "\n".join(f"{name}/" if isinstance(value, dict) else name for name, value in sorted(tree.items()))
    if path in tree and not isinstance(tree[path], dict):
        value = tree[path]
        return str(value() if callable(value) else value)
    first, _, rest = path.partition("/")
    below = tree.get(first)
    return _read_path(below, rest) if isinstance(below, dict) else None


def _text_reply(status: int, content: str) -> Reply:
    return Reply(status, content=content.encode(), headers={"content-type": "text/plain", "server": "EC2ws"})


def _metadata_date(moment: float) -> str:
    return http.format_rfc3339(moment)[:19] + "Z"
