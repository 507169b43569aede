# SPDX-License-Identifier: Apache-2.0
"""Tags as condition keys, and the full ARNs of resources that calls name only in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localcloud.aws.account import ACCOUNT


def request_keys(tags: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """The condition keys of tags that a request gives."""
    given: dict[str, Sequence[str]] = {f"aws:RequestTag/{name}": (value,) for name, value in tags.items()}
    return {**given, **({"aws:TagKeys": tuple(tags)} if tags else {})}


def numbered(parameters: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """The tags of a query: pairs of `<prefix>N.Key` and `<prefix>N.Value`."""
    return {
        str(value): str(parameters.get(f"{key[:-3]}Value", ""))
        for key, value in parameters.items()
        if key.startswith(prefix) and key.endswith(".Key")
    }


def keys(arn: str) -> dict[str, Sequence[str]]:
    """The condition keys for the tags of a resource: `aws:ResourceTag/…`, and the service's own keys."""
    parts = arn.split(":", 5)
    if len(parts) < 6:
        return {}
    service, region, name = parts[2], parts[3], parts[5]
    tags = _tags(service, region, name, arn)
    own = {"ec2": ("ec2:ResourceTag", "ssm:resourceTag"), "secretsmanager": ("secretsmanager:ResourceTag",),
           "iam": ("iam:ResourceTag",), "ecr": ("ecr:ResourceTag",)}.get(service, ())  # fmt: skip
    return {f"{prefix}/{tag}": (value,) for prefix in ("aws:ResourceTag", *own) for tag, value in tags.items()}


def _tags(service: str, region: str, name: str, arn: str) -> Mapping[str, str]:
    if service == "ec2":
        from moto.ec2.models import ec2_backends

        backend = ec2_backends[ACCOUNT][region]
        identifier = name.partition("/")[2]
        if name.startswith("placement-group/"):
            row = backend.__dict__.get("trainyard_placement_groups", {}).get(identifier, {})
            identifier = row.get("GroupId", identifier)
        return dict(backend.tags.get(identifier, {}))
    if service == "secretsmanager" and (secret := _secret(region, arn)) is not None:
        return {tag["Key"]: tag["Value"] for tag in secret.tags or ()}
    if service == "iam":
        from moto.iam.models import iam_backends

        return {
            tag["Key"]: tag["Value"] for tag in iam_backends[ACCOUNT]["aws"].tagger.list_tags_for_resource(arn)["Tags"]
        }
    if service == "ecr":
        from moto.ecr.models import ecr_backends

        repository = ecr_backends[ACCOUNT][region].repositories.get(name.partition("/")[2])
        listed = ecr_backends[ACCOUNT][region].tagger.list_tags_for_resource(arn).get("Tags", []) if repository else []
        return {tag["Key"]: tag["Value"] for tag in listed}
    return {}


def placement_group(region: str, identifier: str) -> str:
    """The name of a placement group, by its id. Its ARN contains the name."""
    from moto.ec2.models import ec2_backends

    rows = ec2_backends[ACCOUNT][region].__dict__.get("trainyard_placement_groups", {})
    return next((str(name) for name, row in rows.items() if row["GroupId"] == identifier), identifier)


def full_arn(arn: str, region: str) -> str:
    """The full ARN of the resource that moto would find: with a suffix or path that the call left out, and without a
    version. `region`: of the call, because moto searches there and ignores the region in an ARN."""
    parts = arn.split(":", 5)
    if parts[2:3] == ["ssm"] and parts[5].startswith("parameter"):
        return _parameter(region, arn)
    if parts[2:3] == ["kms"]:
        return _key(region, arn)
    if parts[2:3] == ["ecr"]:
        return ":".join((*parts[:3], region, ACCOUNT, parts[5]))
    if parts[2:3] == ["secretsmanager"]:
        secret = _secret(region, arn)
        return str(secret.arn) if secret is not None else arn
    if parts[2:3] == ["iam"] and parts[5].startswith(("role/", "instance-profile/", "user/")):
        from moto.iam.models import iam_backends

        backend, (kind, _, name) = iam_backends[ACCOUNT]["aws"], parts[5].partition("/")
        owners = {"role": backend.roles, "instance-profile": backend.instance_profiles, "user": backend.users}[kind]
        return next((str(one.arn) for one in owners.values() if one.name == name), arn)
    return arn


def _parameter(region: str, arn: str) -> str:
    """A parameter's ARN without the version or label at the end of its name."""
    prefix = f"arn:aws:ssm:{region}:{ACCOUNT}:parameter"
    if not arn.startswith(prefix):
        return arn
    return f"{prefix}/{arn.replace(prefix, '').lstrip('/').partition(':')[0]}"


def _key(region: str, arn: str) -> str:
    """The ARN of the key that moto finds by an id or an alias. For a bare name in a call, `arn` has it after `key/`."""
    from moto.kms.models import kms_backends

    backend = kms_backends[ACCOUNT][region]
    try:
        identifier = backend.any_id_to_key_id(arn)
    except (AttributeError, IndexError):  # an alias without a key
        return arn
    return f"arn:aws:kms:{region}:{ACCOUNT}:key/{identifier}" if identifier in backend.keys else arn


def _secret(region: str, arn: str) -> Any:
    from moto.secretsmanager.models import secretsmanager_backends

    named = arn.rpartition(":")[2].removesuffix("-??????")  # moto reads it in this way, and names have no colon
    for secret in secretsmanager_backends[ACCOUNT][region].secrets.values():
        if secret.arn == arn or secret.name == named:
            return secret
    return None


def by_name(region: str, parameter: str, value: str, operation: str) -> Iterator[str]:
    """The ARNs of EC2 resources that a call identifies in another way than by id."""
    from moto.ec2.models import ec2_backends

    backend = ec2_backends[ACCOUNT][region]
    prefix = f"arn:aws:ec2:{region}:{ACCOUNT}"
    addresses = backend.addresses.values() if isinstance(backend.addresses, dict) else backend.addresses
    if parameter == "LaunchTemplateName" and operation != "CreateLaunchTemplate":
        yield f"{prefix}:launch-template/{backend.launch_template_name_to_ids.get(value, value)}"
    elif parameter == "GroupName":  # moto takes an id there, too
        groups = (group for groups in list(backend.groups.values()) for group in groups.values())
        yield from (f"{prefix}:security-group/{group.id}" for group in groups if value in (group.id, group.name))
    elif parameter in ("AssociationId", "PublicIp"):
        attribute = "public_ip" if parameter == "PublicIp" else "association_id"
        named = (address for address in addresses if getattr(address, attribute, None) == value)
        yield from (f"{prefix}:elastic-ip/{address.allocation_id}" for address in named)
        tables = (table for table in backend.route_tables.values() if value in table._associations)
        yield from (f"{prefix}:route-table/{table.id}" for table in tables)
