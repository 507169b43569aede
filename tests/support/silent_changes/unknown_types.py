# SPDX-License-Identifier: Apache-2.0
"""Resources of types that nothing judges, added to the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.silence import AWS, OCI, SilentChange

_BOTH = frozenset({"access-gain", "exposure"})
# What the resource does, its type, and inputs with which it does so.
_ADDED: Mapping[str, tuple[tuple[str, str, Mapping[str, Any]], ...]] = {
    OCI: (
        ("a user in Administrators", "oci:Identity/userGroupMembership:UserGroupMembership", {"userId": "mallory"}),
        ("an API key", "oci:Identity/apiKey:ApiKey", {"userId": "mallory", "keyValue": "key"}),
        ("a bucket replicated to a stranger", "oci:ObjectStorage/replicationPolicy:ReplicationPolicy", {"bucket": "b"}),
        ("a machine with an address", "oci:Core/instance:Instance", {"createVnicDetails": {"assignPublicIp": "true"}}),
        ("a public address", "oci:Core/publicIp:PublicIp", {"privateIpId": "ip"}),
        ("a peering gateway", "oci:Core/localPeeringGateway:LocalPeeringGateway", {"peerId": "vcn"}),
        ("a dynamic routing gateway", "oci:Core/drgAttachment:DrgAttachment", {"drgId": "drg"}),
        ("a quota", "oci:Limits/quota:Quota", {"statements": ["zero compute quotas in tenancy"]}),
    ),
    AWS: (
        ("an access key", "aws:iam/accessKey:AccessKey", {"user": "mallory"}),
        ("a user in a group", "aws:iam/userGroupMembership:UserGroupMembership", {"user": "mallory", "groups": ["a"]}),
        ("members of a group", "aws:iam/groupMembership:GroupMembership", {"users": ["mallory"]}),
        ("a replicated bucket", "aws:s3/bucketReplicationConfig:BucketReplicationConfig", {"role": "r"}),
        ("an access point for all", "aws:s3/accessPoint:AccessPoint", {"policy": "*"}),
        ("a peering", "aws:ec2/vpcPeeringConnection:VpcPeeringConnection", {"peerOwnerId": "666666666666"}),
        ("a grant of a key", "aws:kms/grant:Grant", {"granteePrincipal": "arn:aws:iam::666666666666:root"}),
        ("a public function", "aws:lambda/functionUrl:FunctionUrl", {"authorizationType": "NONE"}),
        ("a notification", "aws:s3/bucketNotification:BucketNotification", {"queues": [{"queueArn": "theirs"}]}),
        ("a registry for others", "aws:ecr/registryPolicy:RegistryPolicy", {"policy": "*"}),
        ("an image for all", "aws:ec2/amiLaunchPermission:AmiLaunchPermission", {"group": "all"}),
        ("a share", "aws:ram/principalAssociation:PrincipalAssociation", {"principal": "666666666666"}),
        ("a public load balancer", "aws:lb/loadBalancer:LoadBalancer", {"internal": False}),
        ("commands on all machines", "aws:ssm/association:Association", {"name": "AWS-RunShellScript"}),
        (
            "a rotation by strangers",
            "aws:secretsmanager/secretRotation:SecretRotation",
            {"rotationLambdaArn": "theirs"},
        ),
        (
            "another group at an interface",
            "aws:ec2/networkInterfaceSecurityGroupAttachment:NetworkInterfaceSecurityGroupAttachment",
            {"securityGroupId": "sg-theirs"},
        ),
    ),
}

CHANGES = (
    *(
        SilentChange(
            number=1,
            title=title,
            stack=stack,
            program=f"pulumi.CustomResource({token!r}, 'more', {inputs!r})",
            shows=(
                f"{token.rpartition(':')[2]} more: made; not judged: nothing is known of {token}",
                next(iter(inputs)),
            ),
            trips=_BOTH,
        )
        for stack, added in _ADDED.items()
        for title, token, inputs in added
    ),
    SilentChange(
        number=1,
        title="a public object",
        stack=AWS,
        program=(
            "pulumi.CustomResource('aws:s3/bucketObjectv2:BucketObjectv2', 'more',"
            " {'bucket': 'data', 'key': 'a', 'acl': 'public-read'})"
        ),
        shows=("acl: public-read",),
        trips=_BOTH,
    ),
)
