# SPDX-License-Identifier: Apache-2.0
"""What others made beside a stack on AWS is found by the rows of the types: also what a local cloud does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jmespath
import pytest
from botocore import xform_name
from botocore.session import Session

from components.aws.client.live_beside import read_beside_in_aws
from components.aws.client.live_values import declared_or_live_setting
from components.aws.types.aws_resource_type import Read
from components.aws.types.live_beside import BUCKET, ENCRYPTION, LIVE_BESIDE, REPOSITORY, SECRET, VPC, LiveBeside
from components.aws.types.templates import fill_template
from components.platform.live import Reading
from components.platform.review import ReviewedResource, Snapshot

THEIRS = "999999999999"
KEY = {"applyServerSideEncryptionByDefault": {"kmsMasterKeyId": "key-1"}}
INPUTS: Mapping[str, Mapping[str, Any]] = {
    BUCKET: {"bucket": "data"}, ENCRYPTION: {"bucket": "data", "rules": [KEY]}, VPC: {}, REPOSITORY: {"name": "images"},
    SECRET: {"name": "token"},
}  # fmt: skip
NOTIFICATION = "aws:s3/bucketNotification:BucketNotification"


class OneAccount:
    account, region_name = "123456789012", "us-west-2"


def found(*more: ReviewedResource, **answers: Any) -> list[str]:
    """What is found in words. `answers`: by the name of a call of botocore's client."""
    rows = (ReviewedResource(kind, "r", f"urn::{kind}", "", inputs, id="data") for kind, inputs in INPUTS.items())
    declared = Snapshot("demo", "aws-dl1", {}, (*rows, *more))
    reading = Reading(declared, lambda error: False)

    def ask(what: str, service: str, read: Read, its: Mapping[str, Any]) -> Any:
        answer = answers.get(xform_name(read.operation))
        return None if answer is None else jmespath.search(fill_template(read.at, its), answer)

    read_beside_in_aws(declared, OneAccount(), reading, ask)  # type: ignore[arg-type]
    return [words.removesuffix(": no stack declares it") for words in reading.side({}).undeclared.values()]


@pytest.mark.parametrize(
    ("operation", "answer", "words"),
    [
        ("get_bucket_policy", {"Policy": "{}"}, "policy of the bucket data"),
        ("get_bucket_replication", {"ReplicationConfiguration": {"Rules": [{"Destination": {"Bucket": "theirs"}}]}},
         "replication of the bucket data to theirs"),
        ("get_bucket_acl", {"Grants": [{"Grantee": {"Type": "Group", "URI": "AllUsers"}, "Permission": "READ"}]},
         "grant of READ on the bucket data to AllUsers"),
        ("list_access_points", {"AccessPointList": [{"Name": "beside"}]}, "access point beside of the bucket data"),
        ("list_grants", {"Grants": [{"GrantId": "g", "GranteePrincipal": f"arn:aws:iam::{THEIRS}:root"}]},
         f"grant g of the bucket's key key-1 to arn:aws:iam::{THEIRS}:root"),
        ("describe_transit_gateway_vpc_attachments",
         {"TransitGatewayVpcAttachments": [{"State": "available", "TransitGatewayAttachmentId": "a",
                                            "TransitGatewayId": "tgw"}]},
         "attachment a of the stack's VPC to the transit gateway tgw"),
        ("describe_vpn_gateways", {"VpnGateways": [{"State": "available", "VpnGatewayId": "vgw"}]},
         "VPN gateway vgw at the stack's VPC"),
        ("describe_registry",
         {"replicationConfiguration": {"rules": [{"destinations": [{"region": "r", "registryId": THEIRS}]}]}},
         f"replication of the account's images to the account {THEIRS} in r"),
        ("describe_secret", {"ReplicationStatus": [{"Region": "eu-west-1"}]}, "copy of the secret token in eu-west-1"),
        ("describe_secret", {"RotationLambdaARN": "arn:lambda"}, "rotation of the secret token by arn:lambda"),
    ],
)  # fmt: skip
def test_what_gives_away_copies_or_deletes_is_said(operation: str, answer: Any, words: str) -> None:
    assert found(**{operation: answer}) == [words]


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("get_bucket_acl",
         {"Grants": [{"Grantee": {"Type": "CanonicalUser", "ID": "1"}, "Permission": "FULL_CONTROL"}]}),
        ("list_grants", {"Grants": [{"GrantId": "g", "GranteePrincipal": "arn:aws:iam::123456789012:role/nodes"}]}),
        ("describe_vpc_peering_connections", {"VpcPeeringConnections": [{"Status": {"Code": "rejected"}}]}),
        ("describe_vpn_gateways", {"VpnGateways": [{"State": "deleted", "VpnGatewayId": "vgw"}]}),
        ("describe_registry", {"replicationConfiguration": {"rules": [
            {"destinations": [{"region": "r", "registryId": "123456789012"}]}]}}),
        ("get_bucket_notification_configuration", {}),
    ],
)  # fmt: skip
def test_what_is_the_accounts_own_or_has_ended_is_no_news(operation: str, answer: Any) -> None:
    assert found(**{operation: answer}) == []


def test_a_setting_that_the_stack_declares_is_compared_and_not_said() -> None:
    answer = {"get_bucket_notification_configuration": {"QueueConfigurations": [{"QueueArn": "q"}]}}
    own = ReviewedResource(NOTIFICATION, "n", "urn::n", "", {"bucket": "data"}, id="data")
    assert found(**answer) == ["notifications of the bucket data to q"]
    assert found(own, **answer) == []


@pytest.mark.parametrize("row", LIVE_BESIDE, ids=lambda row: row.token)
def test_each_call_and_its_parameters_are_those_of_amazons_client(row: LiveBeside) -> None:
    operation = Session().get_service_model(row.service).operation_model(row.read.operation)
    members = operation.input_shape.members if operation.input_shape else {}
    assert row.read.parameters.keys() <= members.keys()
    jmespath.compile(row.read.at)


@pytest.mark.parametrize(
    ("declared", "live", "same"),
    [
        ([{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}],
         [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": False}], True),
        ([{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms"}}],
         [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "theirs"}}], False),
        ([{"id": "a", "expiration": {"days": 7}}],
         [{"ID": "a", "Expiration": {"Days": 7}, "Filter": {"Prefix": ""}}], True),
        ([{"id": "a"}], [{"ID": "a"}, {"ID": "b"}], False),
        (True, False, False),
    ],
)  # fmt: skip
def test_settings_are_compared_by_what_they_do(declared: Any, live: Any, same: bool) -> None:
    assert (declared_or_live_setting(declared, live) == declared) is same
