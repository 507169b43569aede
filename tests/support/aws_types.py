# SPDX-License-Identifier: Apache-2.0
"""The types of `pulumi_aws`, and which of their properties the local cloud's plugin does not support."""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Inputs that the plugin refuses. No stack of ours uses them; most are for IPv6, IPAM or Outposts, or deprecated.
NOT_TAKEN: Mapping[str, frozenset[str]] = {
    "aws:ec2/vpc:Vpc": names(
        "ipv4IpamPoolId ipv4NetmaskLength ipv6CidrBlock ipv6CidrBlockNetworkBorderGroup ipv6IpamPoolId "
        "ipv6NetmaskLength"
    ),
    "aws:ec2/subnet:Subnet": names(
        "customerOwnedIpv4Pool enableLniAtDeviceIndex ipv4IpamPoolId ipv4NetmaskLength ipv6IpamPoolId "
        "ipv6NetmaskLength mapCustomerOwnedIpOnLaunch outpostArn"
    ),
    "aws:ec2/natGateway:NatGateway": names(
        "availabilityMode availabilityZoneAddresses secondaryAllocationIds secondaryPrivateIpAddressCount "
        "secondaryPrivateIpAddresses"
    ),
    "aws:ec2/eip:Eip": names("associateWithPrivateIp customerOwnedIpv4Pool ipamPoolId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": names(
        "dnsOptions resourceConfigurationArn serviceNetworkArn serviceRegion subnetConfigurations"
    ),
    "aws:ec2/routeTable:RouteTable": names("propagatingVgws"),
    "aws:ec2/route:Route": names("odbNetworkArn"),
    "aws:ec2/launchTemplate:LaunchTemplate": names("instanceRequirements secondaryInterfaces"),
    "aws:ec2/instance:Instance": names(
        "enablePrimaryIpv6 ephemeralBlockDevices getPasswordData hibernation hostResourceGroupArn ipv6AddressCount "
        "ipv6Addresses placementGroupId primaryNetworkInterface secondaryNetworkInterfaces secondaryPrivateIps"
    ),
    # Each of these has a resource of its own.
    "aws:s3/bucket:Bucket": names(
        "accelerationStatus acl bucketNamespace corsRules grants lifecycleRules logging objectLockConfiguration policy "
        "replicationConfiguration requestPayer serverSideEncryptionConfiguration versioning website"
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": names("skipDestroy"),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": names(
        "expectedBucketOwner"
    ),
    "aws:s3/bucketVersioning:BucketVersioning": names("expectedBucketOwner"),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": names(
        "expectedBucketOwner timeouts transitionDefaultMinimumObjectSize"
    ),
    "aws:s3/bucketObjectv2:BucketObjectv2": names(
        "acl objectLockLegalHoldStatus objectLockMode objectLockRetainUntilDate overrideProvider"
    ),
    "aws:cloudwatch/logGroup:LogGroup": names("deletionProtectionEnabled"),
    "aws:iam/role:Role": names("inlinePolicies managedPolicyArns"),
    "aws:iam/policy:Policy": names("delayAfterPolicyCreationInMs"),
    "aws:secretsmanager/secret:Secret": names("forceOverwriteReplicaSecret replicas type"),
    "aws:secretsmanager/secretVersion:SecretVersion": names("secretStringWo secretStringWoVersion"),
}
# Outputs that the plugin does not have, in addition to the inputs above.
NOT_SHOWN: Mapping[str, frozenset[str]] = {
    "aws:ec2/vpc:Vpc": names("ipv6AssociationId"),
    "aws:ec2/subnet:Subnet": names("ipv6CidrBlockAssociationId"),
    "aws:ec2/natGateway:NatGateway": names(
        "autoProvisionZones autoScalingIps regionalNatGatewayAddresses regionalNatGatewayAutoMode routeTableId"
    ),
    "aws:ec2/eip:Eip": names("carrierIp customerOwnedIp privateDns ptrRecord publicDns"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": names("dnsEntries"),
    "aws:ec2/route:Route": names("instanceOwnerId"),
    "aws:ec2/instance:Instance": names("outpostArn passwordData"),
    "aws:s3/bucket:Bucket": names("hostedZoneId websiteDomain websiteEndpoint"),
    "aws:s3/bucketObjectv2:BucketObjectv2": names("checksumCrc64nvme"),
    "aws:secretsmanager/secretVersion:SecretVersion": names("hasSecretStringWo secretArn"),
}

# Outputs that a look-up of the plugin does not give.
NOT_GIVEN: Mapping[str, frozenset[str]] = {
    "aws:ec2/getVpc:getVpc": names(
        "arn enableDnsHostnames enableDnsSupport enableNetworkAddressUsageMetrics ipv6AssociationId ipv6CidrBlock"
        " ipv6CidrBlockAssociations mainRouteTableId"
    ),
    "aws:ec2/getSubnet:getSubnet": names(
        "enableResourceNameDnsARecordOnLaunch enableResourceNameDnsAaaaRecordOnLaunch ipv6CidrBlockAssociationId"
        " privateDnsHostnameTypeOnLaunch"
    ),
    "aws:ec2/getRouteTable:getRouteTable": names("arn"),
    "aws:ec2/getAmi:getAmi": names("arn rootSnapshotId"),
    "aws:ec2/getInstances:getInstances": names("ipv6Addresses privateIps publicIps"),
    "aws:ec2/getLaunchTemplate:getLaunchTemplate": names(
        "arn blockDeviceMappings capacityReservationSpecifications cpuOptions creditSpecifications description"
        " disableApiStop disableApiTermination ebsOptimized enclaveOptions hibernationOptions iamInstanceProfiles"
        " imageId instanceInitiatedShutdownBehavior instanceMarketOptions instanceRequirements instanceType kernelId"
        " keyName licenseSpecifications maintenanceOptions metadataOptions monitorings networkInterfaces"
        " networkPerformanceOptions placements privateDnsNameOptions ramDiskId secondaryInterfaces securityGroupNames"
        " tagSpecifications userData vpcSecurityGroupIds"
    ),
    "aws:ssm/getParameter:getParameter": names("insecureValue"),
    "aws:ecr/getRepository:getRepository": names(
        "encryptionConfigurations imageScanningConfigurations mostRecentImageTags"
    ),
    # The ARN and the names of hosts follow from the bucket's name.
    "aws:s3/getBucket:getBucket": names(
        "arn bucketDomainName bucketRegionalDomainName hostedZoneId websiteDomain websiteEndpoint"
    ),
    "aws:iam/getRole:getRole": names("roleLastUseds"),
    "aws:iam/getPolicy:getPolicy": names("policy"),
    "aws:secretsmanager/getSecret:getSecret": names("policy"),
}


def official(token: str, suffix: str = "") -> Any:
    """The class of `pulumi_aws` for a type, or (with `Args`) for its inputs. If that name is taken, the class is
    InitArgs."""
    _, path, name = token.split(":")
    package, _, module = path.partition("/")
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", module).lower()
    found = import_module(f"pulumi_aws.{package}.{module}")
    return getattr(found, f"{name}Init{suffix}", None) or getattr(found, f"{name}{suffix}")
