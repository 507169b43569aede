# SPDX-License-Identifier: Apache-2.0
"""Generated requests to the local AWS. One user has few permissions, for some calls of each protocol. No request of
this user may change or read the deployer's resources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from localcloud.server.http import Request
from tests.support.aws_inside import REGION, AwsInside, Sender, aws_inside, signed, through_link
from tests.support.borders_aws_seams import ACCOUNT, CODE, FORM, SEAMS, Drawn, Stage

SECRET = "TOP-SECRET"
_MINE = {"StringEquals": {"aws:ResourceTag/stack": "mine"}}
_ON = f"arn:aws:{{}}:{REGION}:{ACCOUNT}:{{}}"
RIGHTS: tuple[Mapping[str, Any], ...] = (
    {"Action": "iam:CreateAccessKey", "Resource": f"arn:aws:iam::{ACCOUNT}:user/user"},
    {"Action": "sts:AssumeRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/small"},
    {"Action": ["ec2:DeleteSecurityGroup", "ec2:CreateTags", "ec2:DeleteTags"], "Resource": "*", "Condition": _MINE},
    {"Action": "ec2:CreateVpc", "Resource": "*", "Condition": {"StringEquals": {"aws:RequestTag/stack": "mine"}}},
    {"Action": "ec2:CreateTags", "Resource": "*", "Condition": {"StringEquals": {"ec2:CreateAction": "CreateVpc"}}},
    {"Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:PutObjectTagging",
                "s3:ListMultipartUploadParts"], "Resource": "arn:aws:s3:::team/mine/*"},
    {"Action": ["ssm:PutParameter", "ssm:DeleteParameter", "ssm:GetParameter"],
     "Resource": _ON.format("ssm", "parameter/mine")},
    {"Action": "ec2:RunInstances", "Resource": "*"},
    {"Action": "iam:PassRole", "Resource": f"arn:aws:iam::{ACCOUNT}:role/small"},
    {"Action": "ec2:ModifyVpcEndpoint", "Resource": "*", "Condition": _MINE},
)  # fmt: skip


# Principals of a bucket's policy that are others than the session of the role `small`.
_OTHERS = {"account": "arn:aws:iam::210987654321:role/small", "folder": f"arn:aws:iam::{ACCOUNT}:role/team/small",
           "user": f"arn:aws:iam::{ACCOUNT}:user/small"}  # fmt: skip


class AwsBorder:
    """`tests.support.borders.Border`."""

    def __init__(self, inside: AwsInside) -> None:
        self.inside = inside
        self.stage = Stage(inside.deployer)
        self.read = False
        self._furnish()

    def draw(self, random: Random) -> Drawn:
        self._restock()
        return SEAMS[random.choice(list(SEAMS))](self.stage, random)

    def send(self, request: Drawn) -> int:
        sender = self._session if request.session else self.inside.user
        if request.link:
            asked: Request = through_link(request.method, request.target, request.headers)
        else:
            asked = signed(sender, request.service, request.method, request.target, request.headers,
                           request.body, request.region)  # fmt: skip
        reply = self.inside.answer(asked, request.body)
        self.read = SECRET.encode() in reply.payload()
        return reply.status

    def _furnish(self) -> None:
        deployer = self.inside.deployer
        iam, s3 = (self.inside.client(deployer, name) for name in ("iam", "s3"))
        for name, who in (("small", "user"), ("boss", "deployer")):
            trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/{who}"},
                     "Action": "sts:AssumeRole"}  # fmt: skip
            ec2 = {**trust, "Principal": {"Service": "ec2.amazonaws.com"}}
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust, ec2))
            iam.create_instance_profile(InstanceProfileName=name)
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        iam.put_group_policy(GroupName="scientists", PolicyName="rights",
                             PolicyDocument=_document(*({"Effect": "Allow", **row} for row in RIGHTS)))  # fmt: skip
        s3.create_bucket(Bucket="team")
        s3.put_object(Bucket="team", Key="secret/q.json", Body=SECRET.encode())
        s3.put_object(Bucket="team", Key=CODE, Body=SECRET.encode())
        s3.put_object(Bucket="team", Key="shared/x", Body=b"x")
        self.stage.upload = s3.create_multipart_upload(Bucket="team", Key=CODE)["UploadId"]
        s3.upload_part(Bucket="team", Key=CODE, UploadId=self.stage.upload, PartNumber=1, Body=SECRET.encode())
        # Reloading the state loses a region without any change, so each region gets one.
        for region in (REGION, "eu-west-1"):
            body = b"Action=CreateVpc&Version=2016-11-15&CidrBlock=10.2.0.0/16"
            assert self.inside.send(deployer, "ec2", "POST", "/", {"content-type": FORM}, body, region).status == 200
        for name in ("mine", "theirs"):
            value = "x" if name == "mine" else SECRET
            self.inside.ask(deployer, "ssm", "PutParameter", Name=name, Value=value, Type="String")
            self._group(name)
        self._network()
        keys = self.inside.ask(self.inside.user, "sts", "AssumeRole", RoleSessionName="me",
                               RoleArn=f"arn:aws:iam::{ACCOUNT}:role/small")["Credentials"]  # fmt: skip
        self._session = Sender(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        for name in _OTHERS:
            s3.put_object(Bucket="team", Key=f"of-{name}/x", Body=SECRET.encode())
        from moto.s3.models import s3_backends

        # The API refuses principals that do not exist.
        rows = ({"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::team/of-{name}/*",
                 "Principal": {"AWS": arn}} for name, arn in _OTHERS.items())  # fmt: skip
        s3_backends[ACCOUNT]["aws"].buckets["team"].policy = _document(*rows).encode()
        s3.put_bucket_tagging(Bucket="team", Tagging={"TagSet": []})  # saves the policy

    def _network(self) -> None:
        """Route tables, the user's endpoint, and a launch template."""
        ec2 = self.inside.client(self.inside.deployer, "ec2")
        vpc = ec2.describe_security_groups(GroupIds=[self.stage.groups["mine"]])["SecurityGroups"][0]["VpcId"]

        def tags(kind: str, owner: str) -> list[dict[str, Any]]:
            return [{"ResourceType": kind, "Tags": [{"Key": "stack", "Value": owner}]}]

        for owner in ("mine", "theirs"):
            made = ec2.create_route_table(VpcId=vpc, TagSpecifications=tags("route-table", owner))
            self.stage.routes[owner] = made["RouteTable"]["RouteTableId"]
        made = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=f"com.amazonaws.{REGION}.s3",
                                       TagSpecifications=tags("vpc-endpoint", "mine"))  # fmt: skip
        self.stage.endpoint = made["VpcEndpoint"]["VpcEndpointId"]
        data = {"ImageId": "ami-0d11a1b2c3d4e5f60", "InstanceType": "t3.micro", "IamInstanceProfile": {"Name": "small"}}
        ec2.create_launch_template(LaunchTemplateName="small", LaunchTemplateData=data)

    def _group(self, name: str) -> None:
        from moto.ec2.models import ec2_backends

        ec2 = ec2_backends[ACCOUNT][REGION]
        vpc = next(iter(ec2.vpcs))
        tags = [{"ResourceType": "security-group", "Tags": [{"Key": "stack", "Value": name}]}]
        made = self.inside.ask(self.inside.deployer, "ec2", "CreateSecurityGroup", GroupName=name, Description=name,
                               VpcId=vpc, TagSpecifications=tags)  # fmt: skip
        self.stage.groups[name] = made["GroupId"]

    def _restock(self) -> None:
        """Restores what the user has deleted, and deletes what the user has made: a limit that is reached would hide
        later errors."""
        from moto.ec2.models import ec2_backends
        from moto.iam.models import iam_backends
        from moto.s3.models import s3_backends
        from moto.ssm.models import ssm_backends

        ec2_backends[ACCOUNT][REGION].reservations.clear()
        user = iam_backends[ACCOUNT]["aws"].users["user"]
        user.access_keys[:] = [key for key in user.access_keys if key.access_key_id == self.inside.user.key]
        deployer = self.inside.deployer
        bucket = s3_backends[ACCOUNT]["aws"].buckets["team"]
        for key in ("mine/a", "mine/b"):
            if bucket.keys.get(key) is None:
                self.inside.ask(deployer, "s3", "PutObject", Bucket="team", Key=key, Body=b"mine")
        if ec2_backends[ACCOUNT][REGION].get_security_group_from_id(self.stage.groups["mine"]) is None:
            self._group("mine")
        if "mine" not in dict.keys(ssm_backends[ACCOUNT][REGION]._parameters):
            self.inside.ask(deployer, "ssm", "PutParameter", Name="mine", Value="x", Type="String")

    def outside(self) -> Mapping[str, Any]:
        launched = _launched_and_joined(self.stage)
        return {**_identities(), **_objects(), **_networks(), **_parameters(), **launched, "what was read": self.read}


def _document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def _identities() -> dict[str, Any]:
    from moto.iam.models import iam_backends
    from moto.sts.models import sts_backends

    iam = iam_backends[ACCOUNT]["aws"]
    owners = (*iam.users.values(), *iam.roles.values(), *iam.groups.values())
    found: dict[str, Any] = {
        f"rights of {one.name}": (sorted(one.policies), sorted(one.managed_policies)) for one in owners
    }
    for name, user in iam.users.items():
        if name != "user":
            found[f"keys of {name}"] = [key.access_key_id for key in user.access_keys]
    sessions = (one.role_arn for one in sts_backends[ACCOUNT]["aws"].assumed_roles)
    return {**found, "sessions of others": [arn for arn in sessions if not arn.endswith("role/small")]}


def _objects() -> dict[str, Any]:
    from moto.s3.models import s3_backends

    backend = s3_backends[ACCOUNT]["aws"]
    found: dict[str, Any] = {"buckets": sorted(backend.buckets)}
    bucket = backend.buckets["team"]
    found["settings of team"] = (bucket.policy, bucket.versioning_status, bucket.acl is None, len(bucket.rules))
    for name, key in bucket.keys.items():
        tags = backend.tagger.get_tag_dict_for_resource(key.arn)
        if name == "shared/x":  # a presigned request may change its content
            found[name] = (
                SECRET.encode() in key.value,
                tags,
                dict(key.metadata).get("x-amz-meta-a"),
                key.storage_class,
            )
        elif name.startswith("mine/"):
            found[f"secrets in {name}"] = SECRET.encode() in key.value
        else:
            found[name] = (key.etag, tags, key.storage_class)
    for one in bucket.multiparts.values():
        if not one.key_name.startswith("mine/"):
            found[f"upload of {one.key_name}"] = [part.etag for part in one.list_parts(0, 1000)]
    return {name: value for name, value in found.items() if value is not False or not name.startswith("secrets in")}


def _networks() -> dict[str, Any]:
    from moto.ec2.models import ec2_backends

    found: dict[str, Any] = {}
    for region in (REGION, "eu-west-1"):
        backend = ec2_backends[ACCOUNT][region]
        mine = {one for one, tags in backend.tags.items() if tags.get("stack") == "mine"}
        found[f"networks in {region}"] = sorted(set(backend.vpcs) - mine)
        for groups in list(backend.groups.values()):
            for identifier in (one for one in groups if one not in mine and groups[one].name != "default"):
                found[f"group {identifier}"] = dict(backend.tags.get(identifier, {}))
    return found


def _launched_and_joined(stage: Stage) -> dict[str, Any]:
    """Instances with another role than `small`, and resources of others at the user's endpoint."""
    from moto.ec2.models import ec2_backends

    backend = ec2_backends[ACCOUNT][REGION]
    endpoint = backend.vpc_end_points[stage.endpoint]
    joined = {*(endpoint.route_table_ids or ()), *(endpoint.security_group_ids or ()), *(endpoint.subnet_ids or ())}
    profiles = {(one.iam_instance_profile or {}).get("Arn", "").rpartition("/")[2] for one in backend.all_instances()}
    return {"joined": sorted(joined & {stage.routes["theirs"], stage.groups["theirs"]}),
            "roles of instances": sorted(profiles - {"", "small"})}  # fmt: skip


def _parameters() -> dict[str, Any]:
    from moto.ssm.models import ssm_backends

    held = ssm_backends[ACCOUNT][REGION]._parameters
    others = (name for name in list(dict.keys(held)) if not name.startswith(("/aws/", "mine")))
    return {f"parameter {name}": dict.__getitem__(held, name)[-1].value for name in others}


@contextmanager
def border(home: Path) -> Iterator[AwsBorder]:
    """The local AWS with all resources that the requests need."""
    with aws_inside(home) as inside:
        yield AwsBorder(inside)
