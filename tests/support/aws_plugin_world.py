# SPDX-License-Identifier: Apache-2.0
"""A test case for every type of the local cloud's `aws` plugin: inputs, changes, and the resources that it needs."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.platform.values import Properties
from localcloud import control
from localcloud.aws.plugin.plugin import LocalAws
from tests.support.plugin_world import Case, World, world_of

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
GATEWAY = "aws:ec2/internetGateway:InternetGateway"
NAT = "aws:ec2/natGateway:NatGateway"
EIP = "aws:ec2/eip:Eip"
EIP_ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
ROUTES = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
PLACEMENT = "aws:ec2/placementGroup:PlacementGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
INSTANCE = "aws:ec2/instance:Instance"
CAPACITY = "aws:ec2/capacityReservation:CapacityReservation"
BUCKET = "aws:s3/bucket:Bucket"
ACCESS_BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"
REPOSITORY = "aws:ecr/repository:Repository"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
ROLE = "aws:iam/role:Role"
PROFILE = "aws:iam/instanceProfile:InstanceProfile"
POLICY = "aws:iam/policy:Policy"
SECRET = "aws:secretsmanager/secret:Secret"
VERSION = "aws:secretsmanager/secretVersion:SecretVersion"

TAGS = {"team": "vision", "Name": "One", "aNOTHER-Key": "2"}
_OTHER_TAGS = {"tags": {"team": "speech", "more": "1"}}


def document(*actions: str, principal: str = "") -> str:
    """A policy document; with `principal`, a trust policy."""
    who = {"Principal": {"Service": principal}} if principal else {"Resource": "*"}
    statement = {"Effect": "Allow", "Action": list(actions), **who}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


_TRUST = document("sts:AssumeRole", principal="ec2.amazonaws.com")
_KEEP_TEN = json.dumps(
    {
        "rules": [
            {
                "rulePriority": 1,
                "selection": {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 10},
                "action": {"type": "expire"},
            }
        ]
    }
)


@contextmanager
def aws_world(cloud: control.Cloud, folder: Path) -> Iterator[World]:
    with world_of(LocalAws(), CASES, cloud, folder) as world:
        yield world


def _in_vpc(world: World, **more: Any) -> Properties:
    return {"vpcId": world.id(VPC), "tags": TAGS, **more}


def _of_bucket(world: World, **more: Any) -> Properties:
    return {"bucket": world.id(BUCKET), **more}


def _rule(world: World, **more: Any) -> Properties:
    return {"securityGroupId": world.id(GROUP), "ipProtocol": "tcp", "fromPort": 29400, "toPort": 29400, **more}


def bucket_policy(world: World, effect: str = "Deny") -> str:
    arn = f"arn:aws:s3:::{world.id(BUCKET)}"
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": effect,
                    "Principal": "*",
                    "Action": "s3:PutObject",
                    "Resource": f"{arn}/*",
                    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                }
            ],
        }
    )


def image(world: World) -> str:
    """One of the images that the local AWS has."""
    found = world.engine.invoke("aws:ec2/getAmi:getAmi", {"owners": ["self"], "mostRecent": True})
    return str(found["imageId"])


def template_inputs(world: World, **more: Any) -> Properties:
    return {
        "name": f"{'-'.join(more) or 'cluster'}-template",
        "imageId": image(world),
        "instanceType": "dl1.24xlarge",
        "userData": "I2Nsb3VkLWNvbmZpZwo=",
        "metadataOptions": {"httpTokens": "required", "httpEndpoint": "enabled", "httpPutResponseHopLimit": 2},
        "blockDeviceMappings": [
            {"deviceName": "/dev/sda1", "ebs": {"volumeSize": 200, "volumeType": "gp3", "encrypted": "true"}}
        ],
        "networkInterfaces": [
            {
                "deviceIndex": 0,
                "networkCardIndex": 0,
                "interfaceType": "efa",
                "subnetId": world.id(SUBNET),
                "securityGroups": [world.id(GROUP)],
                "deleteOnTermination": "true",
            }
        ],
        "tagSpecifications": [{"resourceType": "instance", "tags": {"team": "vision"}}],
        "tags": TAGS,
        **more,
    }


def _instance(world: World) -> Properties:
    return {
        "ami": image(world),
        "instanceType": "t3.micro",
        "subnetId": world.id(SUBNET),
        "vpcSecurityGroupIds": [world.id(GROUP)],
        "volumeTags": TAGS,
        "tags": TAGS,
    }


CASES: Mapping[str, Case] = {
    VPC: Case(
        lambda w: {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, "tags": TAGS},
        {"enableDnsHostnames": False, **_OTHER_TAGS},
        {"cidrBlock": "10.1.0.0/16"},
    ),
    SUBNET: Case(
        lambda w: _in_vpc(w, cidrBlock=f"10.0.{len(w.made)}.0/24", availabilityZone="us-east-1a"),
        {"mapPublicIpOnLaunch": True, **_OTHER_TAGS},
        {"availabilityZone": "us-east-1b"},
    ),
    GATEWAY: Case(lambda w: _in_vpc(w), _OTHER_TAGS, {}),
    NAT: Case(
        lambda w: {"subnetId": w.id(SUBNET), "allocationId": w.id(EIP), "tags": TAGS},
        _OTHER_TAGS,
        {"connectivityType": "private"},
    ),
    EIP: Case(lambda w: {"domain": "vpc", "tags": TAGS}, _OTHER_TAGS, {"domain": "standard"}),
    EIP_ASSOCIATION: Case(
        lambda w: {"allocationId": w.id(EIP), "instanceId": w.id(INSTANCE)}, {}, {"allowReassociation": False}
    ),
    ROUTES: Case(
        lambda w: _in_vpc(w, routes=[{"cidrBlock": "0.0.0.0/0", "gatewayId": w.id(GATEWAY)}]),
        {"routes": [], **_OTHER_TAGS},
        {"vpcId": "vpc-other"},
    ),
    ROUTE: Case(
        lambda w: {
            "routeTableId": w.id(ROUTES),
            "destinationCidrBlock": f"10.{100 + len(w.made)}.0.0/16",
            "gatewayId": w.id(GATEWAY),
        },
        {},
        {"destinationCidrBlock": "10.9.0.0/16"},
    ),
    ASSOCIATION: Case(
        lambda w: {"routeTableId": w.id(ROUTES), "subnetId": w.id(SUBNET)}, {}, {"subnetId": "subnet-other"}
    ),
    ENDPOINT: Case(
        lambda w: _in_vpc(w, serviceName="com.amazonaws.us-east-1.s3", routeTableIds=[w.id(ROUTES)]),
        {"policy": document("s3:GetObject"), **_OTHER_TAGS},
        {"vpcEndpointType": "Interface"},
    ),
    GROUP: Case(
        lambda w: _in_vpc(
            w,
            name=f"nodes-{len(w.made)}",
            description="the nodes",
            ingress=[{"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}],
            egress=[{"protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrBlocks": ["0.0.0.0/0"]}],
        ),
        {"ingress": [{"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["10.0.0.0/16"]}], **_OTHER_TAGS},
        {"description": "other"},
    ),
    INGRESS: Case(
        lambda w: _rule(w, referencedSecurityGroupId=w.id(GROUP), tags=TAGS),
        {"toPort": 29500, "description": "rendezvous", **_OTHER_TAGS},
        {"securityGroupId": "sg-other"},
    ),
    EGRESS: Case(
        lambda w: {"securityGroupId": w.id(GROUP), "ipProtocol": "-1", "cidrIpv4": "10.0.0.0/16", "tags": TAGS},
        {"cidrIpv4": "10.0.0.0/17"},
        {"securityGroupId": "sg-other"},
    ),
    PLACEMENT: Case(
        lambda w: {"name": f"close-{len(w.made)}", "strategy": "cluster", "tags": TAGS}, {}, {"strategy": "spread"}
    ),
    TEMPLATE: Case(
        lambda w: template_inputs(w), {"instanceType": "t3.micro", "updateDefaultVersion": True}, {"name": "other"}
    ),
    INSTANCE: Case(
        _instance,
        {"disableApiTermination": True, "volumeTags": {"team": "speech"}, **_OTHER_TAGS},
        {"ami": "ami-other"},
    ),
    CAPACITY: Case(
        lambda w: {
            "availabilityZone": "us-east-1a",
            "instanceType": "dl1.24xlarge",
            "instancePlatform": "Linux/UNIX",
            "instanceCount": 2,
            "tags": TAGS,
        },
        {"instanceCount": 3},
        {"instanceType": "p3.16xlarge"},
    ),
    BUCKET: Case(lambda w: {"bucket": f"vision-{len(w.made)}", "tags": TAGS}, _OTHER_TAGS, {"bucket": "another"}),
    ACCESS_BLOCK: Case(
        lambda w: _of_bucket(w, blockPublicAcls=True, blockPublicPolicy=True),
        {"ignorePublicAcls": True},
        {"bucket": "another"},
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": Case(
        lambda w: _of_bucket(w, rules=[{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}]),
        {"rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms"}, "bucketKeyEnabled": True}]},
        {"bucket": "another"},
        stays=True,  # a bucket always has an encryption: after the deletion, it is the default
    ),
    "aws:s3/bucketVersioning:BucketVersioning": Case(
        lambda w: _of_bucket(w, versioningConfiguration={"status": "Enabled"}),
        {"versioningConfiguration": {"status": "Suspended"}},
        {"bucket": "another"},
        stays=True,
    ),
    "aws:s3/bucketPolicy:BucketPolicy": Case(
        lambda w: _of_bucket(w, policy=bucket_policy(w)), {}, {"bucket": "another"}
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": Case(
        lambda w: _of_bucket(w, rule={"objectOwnership": "BucketOwnerEnforced"}),
        {"rule": {"objectOwnership": "BucketOwnerPreferred"}},
        {"bucket": "another"},
    ),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": Case(
        lambda w: _of_bucket(
            w, rules=[{"id": "old", "status": "Enabled", "filter": {"prefix": "runs/"}, "expiration": {"days": 30}}]
        ),
        {"rules": [{"id": "old", "status": "Disabled", "filter": {"prefix": "runs/"}, "expiration": {"days": 60}}]},
        {"bucket": "another"},
    ),
    OBJECT: Case(
        lambda w: _of_bucket(w, key="some/code.py", content="print(1)", contentType="text/plain", tags=TAGS),
        {"content": "print(2)", **_OTHER_TAGS},
        {"key": "other"},
    ),
    REPOSITORY: Case(
        lambda w: {"name": f"vision/dt-{len(w.made)}", "imageTagMutability": "IMMUTABLE", "tags": TAGS},
        {"imageScanningConfiguration": {"scanOnPush": True}, **_OTHER_TAGS},
        {"name": "vision/other"},
    ),
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": Case(
        lambda w: {"repository": w.id(REPOSITORY), "policy": _KEEP_TEN}, {}, {"repository": "other"}
    ),
    LOG_GROUP: Case(
        lambda w: {"name": f"/trainyard/{len(w.made)}", "retentionInDays": 30, "tags": TAGS},
        {"retentionInDays": 60, **_OTHER_TAGS},
        {"name": "other"},
    ),
    ROLE: Case(
        lambda w: {"name": f"runs-{len(w.made)}", "assumeRolePolicy": _TRUST, "tags": TAGS},
        {"description": "changed", "maxSessionDuration": 7200, **_OTHER_TAGS},
        {"path": "/other/"},
    ),
    "aws:iam/rolePolicy:RolePolicy": Case(
        lambda w: {"role": w.id(ROLE), "name": "own", "policy": document("s3:GetObject")},
        {"policy": document("s3:PutObject")},
        {"name": "other"},
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Case(
        lambda w: {"role": w.id(ROLE), "policyArn": w.id(POLICY)}, {}, {"policyArn": "arn:aws:iam::aws:policy/x"}
    ),
    "aws:iam/groupPolicy:GroupPolicy": Case(
        lambda w: {"group": "scientists", "name": "own", "policy": document("s3:GetObject")},
        {"policy": document("s3:PutObject")},
        {"name": "other"},
    ),
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment": Case(
        lambda w: {"group": "scientists", "policyArn": w.id(POLICY)}, {}, {"group": "others"}
    ),
    PROFILE: Case(
        lambda w: {"name": f"nodes-{len(w.made)}", "role": w.id(ROLE), "tags": TAGS}, _OTHER_TAGS, {"path": "/other/"}
    ),
    POLICY: Case(
        lambda w: {"name": f"reads-{len(w.made)}", "policy": document("s3:GetObject"), "tags": TAGS},
        {"policy": document("s3:PutObject"), **_OTHER_TAGS},
        {"description": "other"},
    ),
    SECRET: Case(
        lambda w: {"name": f"key-{len(w.made)}", "recoveryWindowInDays": 0, "tags": TAGS},
        {"description": "changed", **_OTHER_TAGS},
        {"name": "other"},
    ),
    VERSION: Case(
        lambda w: {"secretId": w.id(SECRET), "secretString": "first"}, {}, {"secretString": "second"}, stays=True
    ),
}
