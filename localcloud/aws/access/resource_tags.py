# SPDX-License-Identifier: Apache-2.0
"""Tags as condition keys, and the full ARNs of resources that calls name only in part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.moto_state import moto_backend


def request_keys(tags: Mapping[str, str], removed: Sequence[str] = ()) -> dict[str, Sequence[str]]:
    """The condition keys of tags that a request gives or removes."""
    given: dict[str, Sequence[str]] = {f"aws:RequestTag/{name}": (value,) for name, value in tags.items()}
    return {**given, **({"aws:TagKeys": (*tags, *removed)} if tags or removed else {})}


def numbered_tags(parameters: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """The tags of a query: pairs of `<prefix>N.Key` and `<prefix>N.Value`."""
    return {
        str(value): str(parameters.get(f"{key[:-3]}Value", ""))
        for key, value in parameters.items()
        if key.startswith(prefix) and key.endswith(".Key")
    }


def tag_pair(row: Mapping[str, Any]) -> tuple[str, str]:
    """The key and the value of a tag, in the spelling of any service."""
    key, value = ({name.lower().removeprefix("tag"): text for name, text in row.items()}.get(name, "")
                  for name in ("key", "value"))  # fmt: skip
    return str(key), str(value)


def resource_tag_keys(arn: str) -> dict[str, Sequence[str]]:
    """The condition keys for the tags of a resource: `aws:ResourceTag/…`, and the service's own keys."""
    parts = arn.split(":", 5)
    if len(parts) < 6:
        return {}
    service, region, name = parts[2], parts[3], parts[5]
    tags = dict(map(tag_pair, _stored_tags(service, region, name, arn)))
    own = {"ec2": ("ec2:ResourceTag", "ssm:resourceTag"), "secretsmanager": ("secretsmanager:ResourceTag",),
           "iam": ("iam:ResourceTag",), "ecr": ("ecr:ResourceTag",)}.get(service, ())  # fmt: skip
    return {f"{prefix}/{tag}": (value,) for prefix in ("aws:ResourceTag", *own) for tag, value in tags.items()}


Rows = Iterable[Mapping[str, str]]


def _stored_tags(service: str, region: str, name: str, arn: str) -> Rows:
    """The tags of a resource, where moto's backend of its service keeps them."""
    if service == "secretsmanager":
        return getattr(_find_secret(region, arn), "tags", None) or ()
    if service not in ("ec2", "iam", "ecr", "kms", "ssm", "logs"):
        return ()
    backend = moto_backend(service, "aws" if service == "iam" else region)
    kind, _, identifier = name.partition("/")
    if service == "iam":
        tables = (backend.roles, backend.users, backend.instance_profiles, backend.managed_policies)
        owner = next((one for table in tables for one in table.values() if one.arn == arn), None)
        own = getattr(owner, "tags", None) or ()
        return own.values() if isinstance(own, Mapping) else own
    if service == "ec2":
        if kind == "placement-group":
            row = backend.__dict__.get("trainyard_placement_groups", {}).get(identifier, {})
            identifier = row.get("GroupId", identifier)
        tags = backend.tags.get(identifier, {})
    elif service == "ssm":
        tables = backend._resource_tags.get(kind.title(), {})
        tags = {**tables.get(identifier, {}), **tables.get(f"/{identifier}", {})}
    elif service == "logs":
        group = backend.groups.get(name.removeprefix("log-group:").partition(":")[0])
        tags = backend.tagger.get_tag_dict_for_resource(group.arn) if group is not None else {}
    else:
        tags = backend.tagger.get_tag_dict_for_resource(arn if service == "ecr" else identifier)
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def full_arn(arn: str, region: str) -> str:
    """The full ARN of the resource that moto would find: with a suffix or path that the call left out, and without a
    version. `region`: of the call, because moto searches there and ignores the region in an ARN."""
    parts = arn.split(":", 5)
    if parts[2:3] == ["ssm"] and parts[5].startswith("parameter"):
        # The name may end with a version or a label.
        prefix = f"arn:aws:ssm:{region}:{ACCOUNT}:parameter"
        if not arn.startswith(prefix):
            return arn
        return f"{prefix}/{arn.replace(prefix, '').lstrip('/').partition(':')[0]}"
    if parts[2:3] == ["kms"]:
        backend = moto_backend("kms", region)
        try:
            identifier = backend.any_id_to_key_id(arn)
        except (AttributeError, IndexError):  # an alias without a key
            return arn
        return f"arn:aws:kms:{region}:{ACCOUNT}:key/{identifier}" if identifier in backend.keys else arn
    if parts[2:3] == ["ecr"]:
        return ":".join((*parts[:3], region, ACCOUNT, parts[5]))
    if parts[2:3] == ["secretsmanager"]:
        secret = _find_secret(region, arn)
        return str(secret.arn) if secret is not None else arn
    if parts[2:3] == ["iam"] and parts[5].startswith(("role/", "instance-profile/", "user/", "group/")):
        backend, (kind, _, name) = moto_backend("iam"), parts[5].partition("/")
        owners = {"role": backend.roles, "instance-profile": backend.instance_profiles, "user": backend.users,
                  "group": backend.groups}[kind]  # fmt: skip
        return next((str(one.arn) for one in owners.values() if one.name == name), arn)
    return arn


def _find_secret(region: str, arn: str) -> Any:
    named = arn.rpartition(":")[2].removesuffix("-??????")  # moto reads it in this way, and names have no colon
    for secret in moto_backend("secretsmanager", region).secrets.values():
        if secret.arn == arn or secret.name == named:
            return secret
    return None
