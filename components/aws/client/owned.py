# SPDX-License-Identifier: Apache-2.0
"""Finds what trainyard made in an account by the tags of the Resource Groups Tagging API, and deletes it
(`trainyard drift --orphans`).

That API leaves out roles, and has other parts of IAM in one region only. So IAM is asked itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from catalog.machines import Price, price_of
from catalog.tables import table
from components.aws.client.aws_session import REGION_KEY, aws_session_of_caller, local_aws_regions
from components.aws.client.buckets import empty_bucket
from components.aws.types import SERVED_TYPES
from components.aws.types.aws_resource_type import AwsResourceType
from components.aws.types.templates import fill_template
from components.platform.calls import Call, ProviderError, call_of, read_at_once
from components.platform.client import UnknownPlaceError
from components.platform.owned import (
    FREE,
    MANAGED_BY,
    OwnedQuestion,
    OwnedReading,
    OwnedResource,
    OwnedResources,
    RemovalRefusedError,
)
from components.s3 import ACCESS_CODES, Session, call_aws, code_of, is_missing_in_aws, list_aws_pages
from schemas.name_suggestions import count_noun

INSTANCE, BUCKET = "aws:ec2/instance:Instance", "aws:s3/bucket:Bucket"
REPOSITORY, LOG_GROUP = "aws:ecr/repository:Repository", "aws:cloudwatch/logGroup:LogGroup"
SECRET, ROLE = "aws:secretsmanager/secret:Secret", "aws:iam/role:Role"
POLICY, PROFILE = "aws:iam/policy:Policy", "aws:iam/instanceProfile:InstanceProfile"
GROUP, GATEWAY = "aws:ec2/securityGroup:SecurityGroup", "aws:ec2/internetGateway:InternetGateway"
# Types outside of EC2, by the service in their ARNs and the part before the name.
_OTHERS = {
    ("s3", ""): BUCKET, ("ecr", "repository"): REPOSITORY, ("logs", "log-group"): LOG_GROUP,
    ("secretsmanager", "secret"): SECRET, ("iam", "role"): ROLE, ("iam", "policy"): POLICY,
    ("iam", "instance-profile"): PROFILE,
}  # fmt: skip
# EC2's types whose tags a machine passes on: they go with it.
_OF_MACHINES = {"volume": "Volumes", "network-interface": "NetworkInterfaces"}
_DATES = ("LaunchTime", "CreateTime", "CreationTimestamp", "CreateDate", "CreatedDate", "createdAt", "creationTime")
_GONE = frozenset({"terminated", "shutting-down", "deleted", "deleting", "cancelled", "expired"})
_IN_USE_CODES = frozenset({
    "BucketNotEmpty", "RepositoryNotEmptyException", "InvalidPlacementGroup.InUse", "InvalidIPAddress.InUse",
    "DependencyViolation", "DeleteConflict", "Client.CannotDelete", "ResourceInUse", "InvalidAddress.Locked",
})  # fmt: skip
_OWN_FOLDER = ".trainyard/"
_BY_SIZE = Price(0.0, "paid by its size")
_AT_ONCE = 8
_SECONDS = 1200.0


def find_owned_in_aws(question: OwnedQuestion) -> OwnedReading:
    """A place is a region. The local AWS is asked in all of its regions if none is named."""
    where = question.where
    if where.place and where.place not in table("aws_machines")["regions"]:
        raise UnknownPlaceError(f"{where.place} is not a region of AWS: --place takes one, such as us-west-2")
    # The local AWS starts with its first call, which takes seconds. Without a saved state it has nothing.
    if where.cloud is not None and not (where.cloud.home / "aws" / "state.sqlite3").exists():
        return OwnedReading(())
    readings: list[OwnedReading] = []
    regions = [where.place] if where.place else [where.config.get(REGION_KEY)]
    if where.cloud is not None and not where.place:
        regions = [*local_aws_regions()]
    for region in regions:
        placed = replace(where, config={**where.config, **({REGION_KEY: region} if region else {})})
        reader = _OwnedReader(question, aws_session_of_caller(placed), asks_iam=not readings)
        readings.append(OwnedReading(tuple(reader.read()), tuple(reader.unread)))
    found = {resource.id: resource for reading in readings for resource in reading.resources}
    return OwnedReading(tuple(found.values()), tuple(part for reading in readings for part in reading.unread))


@dataclass
class _OwnedReader:
    question: OwnedQuestion
    session: Session
    asks_iam: bool = True
    unread: list[str] = field(default_factory=list)

    @cached_property
    def _call(self) -> Call:
        return call_of("drift", self.question.where.tell)

    def read(self) -> Iterator[OwnedResource]:
        tagged = dict(self._allowed(f"the tagged resources of {self.session.region_name}", self._tagged))
        if self.asks_iam:
            for what, read in (("roles", self._roles), ("policies", self._policies), ("profiles", self._profiles)):
                tagged |= dict(self._allowed(f"the {what} of the account", read))
        wanted = {arn: tags for arn, tags in tagged.items() if self.question.wants(tags)}
        found = [one for one in read_at_once(self._described, [*wanted.items()], _AT_ONCE) if one is not None]
        ours = {one.id for one in found}
        # A rule goes with its group.
        yield from (one for one in found if one.within not in ours)

    def _allowed(self, what: str, read: Callable[[], Iterator[tuple[str, Mapping[str, str]]]]) -> Any:
        try:
            return list(read())
        except ProviderError as error:
            if code_of(error.__cause__) not in ACCESS_CODES:
                raise
            self.unread.append(f"{what}: the caller may not list them ({code_of(error.__cause__)})")
            return []

    def _pages(self, service: str, operation: str, **request: Any) -> Iterator[Any]:
        what = f"Look for what trainyard made ({operation})"
        return list_aws_pages(self._call, what, self.session.client(service), operation, **request)

    def _tagged(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        wanted = [{"Key": MANAGED_BY, "Values": ["trainyard"]}]
        for page in self._pages("resourcegroupstaggingapi", "get_resources", TagFilters=wanted):
            yield from ((row["ResourceARN"], _plain_tags(row["Tags"])) for row in page["ResourceTagMappingList"])

    def _roles(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        for page in self._pages("iam", "get_account_authorization_details", Filter=["Role"]):
            yield from ((row["Arn"], _plain_tags(row.get("Tags") or ())) for row in page["RoleDetailList"])

    def _policies(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        arns = [row["Arn"] for page in self._pages("iam", "list_policies", Scope="Local") for row in page["Policies"]]
        client = self.session.client("iam")
        yield from self._tags_of(arns, lambda arn: client.list_policy_tags(PolicyArn=arn))

    def _profiles(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        pages = self._pages("iam", "list_instance_profiles")
        names = {row["Arn"]: row["InstanceProfileName"] for page in pages for row in page["InstanceProfiles"]}
        client = self.session.client("iam")
        read = lambda arn: client.get_instance_profile(InstanceProfileName=names[arn])["InstanceProfile"]  # noqa: E731
        yield from self._tags_of([*names], read)

    def _tags_of(self, arns: Sequence[str], ask: Callable[[str], Any]) -> Iterator[tuple[str, Mapping[str, str]]]:
        def tags(arn: str) -> Mapping[str, str]:
            return _plain_tags(call_aws(self._call, f"Read the tags of {arn}", partial(ask, arn)).get("Tags") or ())

        yield from zip(arns, read_at_once(tags, arns, _AT_ONCE), strict=True)

    def _described(self, tagged: tuple[str, Mapping[str, str]]) -> OwnedResource | None:
        """None if it is gone, or goes with a machine: AWS lists tags of what is gone for a while."""
        arn, tags = tagged
        token, kind, name = _parts_of_arn(arn)
        row = SERVED_TYPES.get(token)
        if row is None:
            if kind in _OF_MACHINES and self._is_attached(kind, name):
                return None
            words = f"{kind.replace('-', ' ')} {name}"
            return OwnedResource("", (arn, name), words, tags, self._place_of(arn), owner=tags.get("team", ""))
        model = _read_model(self.session, self._call, row, name)
        if model is None:
            return None
        ids = (arn,) if token in (REPOSITORY, LOG_GROUP) else (arn, name)
        content, cost = "", FREE
        if token == BUCKET:
            content, cost = self._objects(name), _BY_SIZE
        elif token == REPOSITORY:
            content, cost = self._images(name), _BY_SIZE
        elif token == LOG_GROUP:
            cost = _BY_SIZE
        elif token == INSTANCE:
            cost = price_of(str(model.get("InstanceType")), self.question.prices)
        elif row.standing is not None:
            members = {input_[:1].upper() + input_[1:]: value for input_, value in row.standing.only.items()}
            if all(model.get(member) == value for member, value in members.items()):
                cost = price_of(row.standing.what, self.question.prices)
        called = tags.get("Name") or name
        words = f"{_words_of_type(row)} {called}" + (f" ({name})" if called != name else "")
        within = f"{arn.rpartition(':')[0]}:security-group/{model['GroupId']}" if kind == "security-group-rule" else ""
        return OwnedResource(
            token, ids, words, tags, self._place_of(arn), _date_in(model), tags.get("team", ""), cost, within, content
        )

    def _place_of(self, arn: str) -> str:
        _, _, _, region, account, _ = arn.split(":", 5)
        return f"{region or 'all regions'}, account {account or self.session.account}"

    def _is_attached(self, kind: str, name: str) -> bool:
        client, member = self.session.client("ec2"), _OF_MACHINES[kind]
        ask = client.describe_volumes if kind == "volume" else client.describe_network_interfaces
        named = {"VolumeIds": [name]} if kind == "volume" else {"NetworkInterfaceIds": [name]}
        rows = _unless_missing(self._call, f"Read {name}", lambda: ask(**named)[member]) or ()
        return all(row.get("Attachments") or row.get("Attachment") for row in rows)

    def _objects(self, bucket: str) -> str:
        """The training's own objects in a bucket: all that is not in the folder of `up` and of machines."""
        names = {
            version["Key"]
            for page in self._pages("s3", "list_object_versions", Bucket=bucket)
            for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
        }
        names = {name for name in names if not name.startswith(_OWN_FOLDER)}
        return count_noun(len(names), "object") if names else ""

    def _images(self, repository: str) -> str:
        pages = self._pages("ecr", "list_images", repositoryName=repository)
        digests = {image.get("imageDigest") for page in pages for image in page["imageIds"]}
        return count_noun(len(digests), "image") if digests else ""


def _plain_tags(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {row["Key"]: row["Value"] for row in rows}


def _words_of_type(row: AwsResourceType) -> str:
    return row.kind.replace("-", " ") or row.token.rpartition(":")[2].lower()


def _parts_of_arn(arn: str) -> tuple[str, str, str]:
    """The type in states, AWS's kind, and the name or id. `arn:aws:ec2:us-west-2:123456789012:subnet/subnet-1`"""
    service, rest = arn.split(":", 5)[2], arn.split(":", 5)[5]
    separator = ":" if service in ("logs", "secretsmanager") else "/"
    kind, found, name = rest.partition(separator)
    if not found:
        kind, name = "", rest
    if service == "ec2":
        rows = [token for token, row in SERVED_TYPES.items() if row.kind == kind]
        return (rows[0] if rows else ""), kind, name
    token = _OTHERS.get((service, kind), "")
    # The id of a policy and of a secret is its ARN; a path precedes the name of a role.
    whole = arn if token in (POLICY, SECRET) else name.rpartition("/")[2] if token in (ROLE, PROFILE) else name
    return token, kind or service, whole.removesuffix(":*") if token == LOG_GROUP else whole


def _read_model(session: Session, call: Call, row: AwsResourceType, name: str) -> Mapping[str, Any] | None:
    """What the first call of its row says. None if it is gone."""
    import jmespath
    from botocore import xform_name

    read, values = row.reads[0], {"id": name, "name": name, "region": session.region_name}
    ask = getattr(session.client(row.service), xform_name(read.operation))

    def describe() -> Any:
        answer = ask(**fill_template(read.parameters, values))
        return jmespath.search(str(fill_template(read.at, values)), answer)

    model = _unless_missing(call, f"Read {name}", describe, read.missing)
    state = jmespath.search(row.state, model) if model and row.state else None
    return None if not model or state in row.gone or state in _GONE else model


def _unless_missing(call: Call, what: str, ask: Callable[[], Any], codes: str = "") -> Any:
    def read() -> Any:
        try:
            return ask()
        except Exception as error:
            if is_missing_in_aws(error) or code_of(error) in codes.split() or "NotFound" in code_of(error):
                return None
            raise

    return call_aws(call, what, read)


def _date_in(model: Mapping[str, Any]) -> datetime | None:
    found = next((model[name] for name in _DATES if model.get(name)), None)
    if isinstance(found, int | float):
        return datetime.fromtimestamp(found / 1000, UTC)
    return found if isinstance(found, datetime) else None


@dataclass
class OwnedDeleter:
    """Deletes one resource, and waits until it is gone."""

    question: OwnedQuestion

    def delete(self, call: Call, resource: OwnedResource) -> None:
        token, _, name = _parts_of_arn(resource.id)
        region = resource.id.split(":")[3]
        config = {**self.question.where.config, **({REGION_KEY: region} if region else {})}
        session, row = aws_session_of_caller(replace(self.question.where, config=config)), SERVED_TYPES[token]
        try:
            model = _read_model(session, call, row, name)
            if model is None:
                return
            prepare = _PREPARATIONS.get(token)
            if prepare is not None:
                prepare(session, call, name, model)
            self._delete(session, call, row, name, model)
        except ProviderError as error:
            if code_of(error.__cause__) in _IN_USE_CODES | row.in_use_codes:
                raise RemovalRefusedError(error.cause) from error
            raise
        deadline = time.monotonic() + _SECONDS
        while _read_model(session, call, row, name) is not None:
            if time.monotonic() > deadline:
                raise ProviderError(f"{resource.words} is still there after {_SECONDS / 60:.0f} minutes")
            call.stop.wait(0.5)

    def _delete(self, session: Session, call: Call, row: AwsResourceType, name: str, model: Mapping[str, Any]) -> None:
        from botocore import xform_name

        values = {
            "id": name, "region": session.region_name, "forceDelete": True, "securityGroupId": model.get("GroupId"),
        }  # fmt: skip
        operation = row.delete.operation
        if row.kind == "security-group-rule":
            operation = f"RevokeSecurityGroup{'Egress' if model.get('IsEgress') else 'Ingress'}"
        ask = getattr(session.client(row.service), xform_name(operation))
        call_aws(call, f"Delete {name}", partial(ask, **fill_template(row.delete.parameters, values)))


def _detach_gateway(session: Session, call: Call, name: str, model: Mapping[str, Any]) -> None:
    client = session.client("ec2")
    for attachment in model.get("Attachments") or ():
        ask = partial(client.detach_internet_gateway, InternetGatewayId=name, VpcId=attachment["VpcId"])
        call_aws(call, f"Detach {name}", ask)


def _revoke_rules(session: Session, call: Call, name: str, model: Mapping[str, Any]) -> None:
    """Two groups may name each other, and AWS deletes none that another one names."""
    client = session.client("ec2")
    wanted = [{"Name": "group-id", "Values": [name]}]
    pages = list_aws_pages(call, f"List the rules of {name}", client, "describe_security_group_rules", Filters=wanted)
    for rule in [rule for page in pages for rule in page["SecurityGroupRules"]]:
        revoke = client.revoke_security_group_egress if rule["IsEgress"] else client.revoke_security_group_ingress
        ask = partial(revoke, GroupId=name, SecurityGroupRuleIds=[rule["SecurityGroupRuleId"]])
        call_aws(call, f"Revoke a rule of {name}", ask)


def _free_role(session: Session, call: Call, name: str, model: Mapping[str, Any]) -> None:
    """Takes a role out of its profiles and its policies."""
    client = session.client("iam")
    role: dict[str, Any] = {"RoleName": name}
    pages = partial(list_aws_pages, call, f"Look at the role {name}", client)
    for page in list(pages("list_instance_profiles_for_role", **role)):
        for profile in page["InstanceProfiles"]:
            held = {**role, "InstanceProfileName": profile["InstanceProfileName"]}
            call_aws(call, f"Free {name}", partial(client.remove_role_from_instance_profile, **held))
    for page in list(pages("list_attached_role_policies", **role)):
        for attached in page["AttachedPolicies"]:
            ask = partial(client.detach_role_policy, **role, PolicyArn=attached["PolicyArn"])
            call_aws(call, f"Free {name}", ask)
    for page in list(pages("list_role_policies", **role)):
        for inline in page["PolicyNames"]:
            call_aws(call, f"Free {name}", partial(client.delete_role_policy, **role, PolicyName=inline))


def _free_policy(session: Session, call: Call, name: str, model: Mapping[str, Any]) -> None:
    """Takes a policy from everybody who has it, and removes its older versions."""
    client = session.client("iam")
    policy: dict[str, Any] = {"PolicyArn": name}
    pages = partial(list_aws_pages, call, f"Look at the policy {name}", client)
    for page in list(pages("list_entities_for_policy", **policy)):
        for kind in ("Role", "User", "Group"):
            for holder in page[f"Policy{kind}s"]:
                detach = getattr(client, f"detach_{kind.lower()}_policy")
                ask = partial(detach, **policy, **{f"{kind}Name": holder[f"{kind}Name"]})
                call_aws(call, f"Detach {name}", ask)
    for page in list(pages("list_policy_versions", **policy)):
        for version in page["Versions"]:
            if not version["IsDefaultVersion"]:
                ask = partial(client.delete_policy_version, **policy, VersionId=version["VersionId"])
                call_aws(call, f"Delete a version of {name}", ask)


def _free_profile(session: Session, call: Call, name: str, model: Mapping[str, Any]) -> None:
    client = session.client("iam")
    for role in model.get("Roles") or ():
        held = {"InstanceProfileName": name, "RoleName": role["RoleName"]}
        call_aws(call, f"Free {name}", partial(client.remove_role_from_instance_profile, **held))


def _empty(session: Session, call: Call, name: str, model: Mapping[str, Any]) -> None:
    empty_bucket(session.client("s3"), call.report.info, name)


_PREPARATIONS: Mapping[str, Callable[[Session, Call, str, Mapping[str, Any]], None]] = {
    BUCKET: _empty, GATEWAY: _detach_gateway, GROUP: _revoke_rules, POLICY: _free_policy, PROFILE: _free_profile,
    ROLE: _free_role,
}  # fmt: skip
OWNED_RESOURCES = OwnedResources(find_owned_in_aws, lambda question: OwnedDeleter(question).delete)
