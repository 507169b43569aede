# SPDX-License-Identifier: Apache-2.0
"""What others can make beside a stack's resources that gives access to them, or that moves or deletes what they have.
A drift looks for each of these, as no stack declares them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from components.aws.types.aws_resource_type import Read

BUCKET, VPC = "aws:s3/bucket:Bucket", "aws:ec2/vpc:Vpc"
REPOSITORY, SECRET = "aws:ecr/repository:Repository", "aws:secretsmanager/secret:Secret"
ENCRYPTION = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
_NO_INPUTS: Mapping[str, str] = MappingProxyType({})
_BUCKET = {"Bucket": "{id}"}
# Peerings and attachments that are no longer there.
_ENDED = '`["deleted", "deleting", "rejected", "failed", "expired"]`'


class LiveBeside(NamedTuple):
    """`token`: the type of what is found. `beside`: the type of the stack's resource, which does not declare it."""

    token: str
    beside: str
    service: str
    # Its `at` is a list with an item for each that is found.
    read: Read
    # A template of the fields of the item, or of `found` if the item is a text, and of the resource's inputs.
    words: str
    # Program's input -> template, for what a review judges.
    inputs: Mapping[str, str] = _NO_INPUTS
    # The input by which the stack's own resource of the type would name the same one.
    declared_by: str = ""
    # Further fields of templates -> their JMESPath in the inputs. Without a value the call is skipped.
    needs: Mapping[str, str] = _NO_INPUTS


def _vpc_peering(side: str, other: str) -> LiveBeside:
    return LiveBeside(
        "aws:ec2/vpcPeeringConnection:VpcPeeringConnection", VPC, "ec2",
        Read(
            "DescribeVpcPeeringConnections", {"Filters": [{"Name": f"{side}-vpc-info.vpc-id", "Values": ["{id}"]}]},
            f"VpcPeeringConnections[?!contains({_ENDED}, Status.Code) && {other}VpcInfo.VpcId != '{{id}}']."
            f"{{id: VpcPeeringConnectionId, vpc: {other}VpcInfo.VpcId, owner: {other}VpcInfo.OwnerId}}",
        ),
        "peering {id} of the stack's VPC with {vpc} of the account {owner}",
    )  # fmt: skip


LIVE_BESIDE = (
    LiveBeside(
        "aws:s3/bucketPolicy:BucketPolicy", BUCKET, "s3",
        Read("GetBucketPolicy", _BUCKET, "[{policy: Policy}]", "NoSuchBucketPolicy"),
        "policy of the bucket {bucket}", {"bucket": "{bucket}", "policy": "{policy}"}, "bucket",
    ),
    LiveBeside(
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", BUCKET, "s3",
        Read(
            "GetBucketLifecycleConfiguration", _BUCKET, "Rules[].{found: ID}", "NoSuchLifecycleConfiguration",
        ),
        "lifecycle rule {found} of the bucket {bucket}", declared_by="bucket",
    ),
    LiveBeside(
        "aws:s3/bucketNotification:BucketNotification", BUCKET, "s3",
        Read(
            "GetBucketNotificationConfiguration", _BUCKET,
            "[TopicConfigurations[].TopicArn, QueueConfigurations[].QueueArn, "
            "LambdaFunctionConfigurations[].LambdaFunctionArn][]",
        ),
        "notifications of the bucket {bucket} to {found}", declared_by="bucket",
    ),
    LiveBeside(
        "aws:s3/bucketReplicationConfig:BucketReplicationConfig", BUCKET, "s3",
        Read(
            "GetBucketReplication", _BUCKET, "ReplicationConfiguration.Rules[].Destination.Bucket",
            "ReplicationConfigurationNotFoundError",
        ),
        "replication of the bucket {bucket} to {found}", declared_by="bucket",
    ),
    LiveBeside(
        "aws:s3/bucketAcl:BucketAcl", BUCKET, "s3",
        Read(
            "GetBucketAcl", _BUCKET,
            "Grants[?!(Grantee.Type == 'CanonicalUser' && Permission == 'FULL_CONTROL')]."
            "{what: Permission, to: Grantee.URI || Grantee.ID || Grantee.EmailAddress}",
        ),
        "grant of {what} on the bucket {bucket} to {to}", declared_by="bucket",
    ),
    LiveBeside(
        "aws:s3/accessPoint:AccessPoint", BUCKET, "s3control",
        Read("ListAccessPoints", {"AccountId": "{account}", "Bucket": "{id}"}, "AccessPointList[].{found: Name}"),
        "access point {found} of the bucket {bucket}", declared_by="bucket",
    ),
    LiveBeside(
        "aws:kms/grant:Grant", ENCRYPTION, "kms",
        Read(
            "ListGrants", {"KeyId": "{key}"},
            "Grants[?!contains(GranteePrincipal, '.amazonaws.com') && !contains(GranteePrincipal, ':{account}:')]."
            "{id: GrantId, to: GranteePrincipal}",
        ),
        "grant {id} of the bucket's key {key} to {to}",
        needs={"key": "rules[].applyServerSideEncryptionByDefault.kmsMasterKeyId | [0]"},
    ),
    _vpc_peering("requester", "Accepter"),
    _vpc_peering("accepter", "Requester"),
    LiveBeside(
        "aws:ec2transitgateway/vpcAttachment:VpcAttachment", VPC, "ec2",
        Read(
            "DescribeTransitGatewayVpcAttachments", {"Filters": [{"Name": "vpc-id", "Values": ["{id}"]}]},
            f"TransitGatewayVpcAttachments[?!contains({_ENDED}, State)]."
            "{id: TransitGatewayAttachmentId, to: TransitGatewayId}",
        ),
        "attachment {id} of the stack's VPC to the transit gateway {to}",
    ),
    LiveBeside(
        "aws:ec2/vpnGatewayAttachment:VpnGatewayAttachment", VPC, "ec2",
        Read(
            "DescribeVpnGateways", {"Filters": [{"Name": "attachment.vpc-id", "Values": ["{id}"]}]},
            "VpnGateways[?State != 'deleted'].{found: VpnGatewayId}",
        ),
        "VPN gateway {found} at the stack's VPC",
    ),
    LiveBeside(
        "aws:ecr/replicationConfiguration:ReplicationConfiguration", REPOSITORY, "ecr",
        Read(
            "DescribeRegistry", {},
            "replicationConfiguration.rules[].destinations[?registryId != '{account}'][]."
            "{region: region, to: registryId}",
        ),
        "replication of the account's images to the account {to} in {region}",
    ),
    LiveBeside(
        "aws:secretsmanager/secretReplica:SecretReplica", SECRET, "secretsmanager",
        Read("DescribeSecret", {"SecretId": "{id}"}, "ReplicationStatus[].{found: Region}"),
        "copy of the secret {name} in {found}",
    ),
    LiveBeside(
        "aws:secretsmanager/secretRotation:SecretRotation", SECRET, "secretsmanager",
        Read("DescribeSecret", {"SecretId": "{id}"}, "[RotationLambdaARN][]"),
        "rotation of the secret {name} by {found}",
    ),
)  # fmt: skip
