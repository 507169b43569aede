# SPDX-License-Identifier: Apache-2.0
"""The rows of the local cloud's `aws` plugin, the replacement table, `pulumi_aws` and botocore, held to one another."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, get_args, get_origin

import pytest
from pulumi import _types

from catalog.tables import table
from localcloud.plugin.aws.functions import FUNCTIONS, PLACES
from localcloud.plugin.aws.plugin import LocalAws
from localcloud.plugin.aws.properties import AwsProperties
from localcloud.plugin.aws.shapes import MAPS
from localcloud.plugin.aws.types import ROWS

# A package of pulumi_aws warns of its own deprecated modules when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:.* has been deprecated:DeprecationWarning")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Inputs that the plugin refuses: what no stack of ours uses, most of it IPv6, IPAM, Outposts or deprecated.
NOT_TAKEN: Mapping[str, frozenset[str]] = {
    "aws:ec2/vpc:Vpc": _names(
        "ipv4IpamPoolId ipv4NetmaskLength ipv6CidrBlock ipv6CidrBlockNetworkBorderGroup ipv6IpamPoolId "
        "ipv6NetmaskLength"
    ),
    "aws:ec2/subnet:Subnet": _names(
        "customerOwnedIpv4Pool enableLniAtDeviceIndex ipv4IpamPoolId ipv4NetmaskLength ipv6IpamPoolId "
        "ipv6NetmaskLength mapCustomerOwnedIpOnLaunch outpostArn"
    ),
    "aws:ec2/natGateway:NatGateway": _names(
        "availabilityMode availabilityZoneAddresses secondaryAllocationIds secondaryPrivateIpAddressCount "
        "secondaryPrivateIpAddresses"
    ),
    "aws:ec2/eip:Eip": _names("associateWithPrivateIp customerOwnedIpv4Pool ipamPoolId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _names(
        "dnsOptions resourceConfigurationArn serviceNetworkArn serviceRegion subnetConfigurations"
    ),
    "aws:ec2/routeTable:RouteTable": _names("propagatingVgws"),
    "aws:ec2/route:Route": _names("odbNetworkArn"),
    "aws:ec2/launchTemplate:LaunchTemplate": _names("instanceRequirements secondaryInterfaces"),
    "aws:ec2/instance:Instance": _names(
        "enablePrimaryIpv6 ephemeralBlockDevices getPasswordData hibernation hostResourceGroupArn ipv6AddressCount "
        "ipv6Addresses placementGroupId primaryNetworkInterface secondaryNetworkInterfaces secondaryPrivateIps"
    ),
    # Each of these has a resource of its own.
    "aws:s3/bucket:Bucket": _names(
        "accelerationStatus acl bucketNamespace corsRules grants lifecycleRules logging objectLockConfiguration policy "
        "replicationConfiguration requestPayer serverSideEncryptionConfiguration versioning website"
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _names("skipDestroy"),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _names(
        "expectedBucketOwner"
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _names("expectedBucketOwner"),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _names(
        "expectedBucketOwner timeouts transitionDefaultMinimumObjectSize"
    ),
    "aws:s3/bucketObjectv2:BucketObjectv2": _names(
        "acl objectLockLegalHoldStatus objectLockMode objectLockRetainUntilDate overrideProvider"
    ),
    "aws:cloudwatch/logGroup:LogGroup": _names("deletionProtectionEnabled"),
    "aws:iam/role:Role": _names("inlinePolicies managedPolicyArns"),
    "aws:iam/policy:Policy": _names("delayAfterPolicyCreationInMs"),
    "aws:secretsmanager/secret:Secret": _names("forceOverwriteReplicaSecret replicas type"),
    "aws:secretsmanager/secretVersion:SecretVersion": _names("secretStringWo secretStringWoVersion"),
}
# Outputs that the plugin does not show, beside the inputs that it does not take.
NOT_SHOWN: Mapping[str, frozenset[str]] = {
    "aws:ec2/vpc:Vpc": _names("ipv6AssociationId"),
    "aws:ec2/subnet:Subnet": _names("ipv6CidrBlockAssociationId"),
    "aws:ec2/natGateway:NatGateway": _names(
        "autoProvisionZones autoScalingIps regionalNatGatewayAddresses regionalNatGatewayAutoMode routeTableId"
    ),
    "aws:ec2/eip:Eip": _names("carrierIp customerOwnedIp privateDns ptrRecord publicDns"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _names("dnsEntries"),
    "aws:ec2/route:Route": _names("instanceOwnerId"),
    "aws:ec2/instance:Instance": _names("outpostArn passwordData"),
    "aws:s3/bucket:Bucket": _names("hostedZoneId websiteDomain websiteEndpoint"),
    "aws:s3/bucketObjectv2:BucketObjectv2": _names("checksumCrc64nvme"),
    "aws:secretsmanager/secretVersion:SecretVersion": _names("hasSecretStringWo secretArn"),
}


def official(token: str, suffix: str = "") -> Any:
    """The class of `pulumi_aws` for a type, or (`Args`) for its inputs. One that clashes is called InitArgs."""
    _, path, name = token.split(":")
    package, _, module = path.partition("/")
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", module).lower()
    found = import_module(f"pulumi_aws.{package}.{module}")
    return getattr(found, f"{name}Init{suffix}", None) or getattr(found, f"{name}{suffix}")


def ours(token: str) -> AwsProperties:
    resource = LocalAws().resource(token)
    assert isinstance(resource, AwsProperties)
    return resource


def inputs_of(token: str) -> set[str]:
    return set(_types.input_type_py_to_pulumi_names(official(token, "Args")).values())


@pytest.mark.parametrize("token", ROWS)
def test_every_input_is_taken_and_none_is_invented(token: str) -> None:
    # `tagsAll` is what the provider itself adds where it has tags of its own.
    taken = ours(token).inputs_of_api() - {"tagsAll"}
    assert inputs_of(token) - taken == NOT_TAKEN.get(token, frozenset())
    assert taken <= inputs_of(token)


@pytest.mark.parametrize("token", ROWS)
def test_every_output_is_shown_and_none_is_invented(token: str) -> None:
    named = set(_types.resource_types(official(token)))
    hidden = NOT_SHOWN.get(token, frozenset()) | NOT_TAKEN.get(token, frozenset()) & named
    assert named - ours(token).outputs_of_api() == hidden
    assert ours(token).outputs_of_api() <= named


def test_every_row_is_in_the_replacement_table_and_names_its_inputs() -> None:
    rows = {token: row for token, row in table("replacement").items() if token.startswith("aws:")}
    assert set(rows) == set(ROWS)
    for token, row in rows.items():
        named = {path.split(".")[0] for paths in row.values() for path in paths}
        assert named <= ours(token).inputs_of_api(), token


def _fields(kind: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every path of an input type that has parts, without indices, and the type of what is there."""
    if get_origin(kind) is Sequence:
        kind = get_args(get_args(kind)[0])[0]
    if _types.is_input_type(kind):
        for name, inner in _types.input_type_types(kind).items():
            yield f"{path}.{name}", inner
            yield from _fields(inner, f"{path}.{name}")


def _maps(arguments: Any) -> Iterator[str]:
    for name, kind in _types.input_type_types(arguments).items():
        for path, inner in ((name, kind), *_fields(kind, name)):
            if get_origin(inner) is Mapping:
                yield path.rpartition(".")[2]


def test_the_plugin_knows_every_map() -> None:
    """Of a map every key counts, and is as people wrote it; a part of an object has the API's name."""
    named = {
        name
        for token in ROWS
        for name in _maps(official(token, "Args"))
        if name not in NOT_TAKEN.get(token, frozenset())
    }
    assert named | {"tagsAll"} == MAPS


@pytest.mark.parametrize("token", [*FUNCTIONS, *PLACES])
def test_every_function_exists(token: str) -> None:
    _, path, name = token.split(":")
    package = path.split("/")[0]
    in_python = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    found = getattr(import_module("pulumi_aws" if package == "index" else f"pulumi_aws.{package}"), in_python)
    assert f"'{token}'" in inspect.getsource(found)
