# SPDX-License-Identifier: Apache-2.0
"""What others made beside a stack on OCI is found by the rows of the types: also what a local cloud does not have."""

from __future__ import annotations

import re
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from components.oci.client.live_beside import read_beside_in_oci
from components.oci.client.session import CLIENTS
from components.oci.types.live_beside import BUCKET, LIVE_BESIDE, VCN, LiveBeside
from components.platform.live import Reading
from components.platform.review import ReviewedResource, Snapshot

DECLARED = Snapshot("demo", "oci", {}, tuple(
    ReviewedResource(kind, key, f"urn::{key}", "", {"compartmentId": "here", "namespace": "n", "name": key}, id=key)
    for key, kind in {"bucket": BUCKET, "vcn": VCN}.items()
))  # fmt: skip
EVERY_ROW = [row for row in LIVE_BESIDE for row in (row, *row.below)]
# The SDK's models, where they are not those of the type.
MODELS = {"OtherSubnet": "Subnet", "NetworkSecurityGroupSecurityRule": "SecurityRule", "ObjectLifecyclePolicy":
          "ObjectLifecycleRule", "Preauthrequest": "PreauthenticatedRequestSummary",
          "ReplicationPolicy": "ReplicationPolicySummary"}  # fmt: skip


def found(**answers: list[Any]) -> list[str]:
    """What is found in words, if these calls answer so."""
    reading = Reading(DECLARED, lambda error: False)

    def lists(service: str, operation: str, *within: str, **named: str) -> list[Any]:
        return answers.get(operation, [])

    read_beside_in_oci(DECLARED, reading, lists)
    return [words.removesuffix(": no stack declares it") for words in reading.side({}).undeclared.values()]


def model(kind: str, **fields: Any) -> Any:
    package, _, name = kind.partition(".")
    return getattr(import_module(f"oci.{package}.models"), name)(**fields)


def test_nothing_beside_the_stack_is_no_news() -> None:
    assert found() == []
    own = model("core.Subnet", id="vcn", vcn_id="vcn")
    elsewhere = model("core.Subnet", id="other", vcn_id="other")
    assert found(list_subnets=[own, elsewhere]) == []


@pytest.mark.parametrize(
    ("operation", "kind", "fields", "words"),
    [
        (
            "list_replication_policies",
            "object_storage.ReplicationPolicySummary",
            {"name": "copy", "destination_bucket_name": "theirs", "destination_region_name": "us-phoenix-1"},
            "replication policy copy: it copies the bucket bucket to the bucket theirs in us-phoenix-1",
        ),
        (
            "list_local_peering_gateways",
            "core.LocalPeeringGateway",
            {"display_name": "peer", "peer_advertised_cidr": "10.9.0.0/16", "vcn_id": "vcn"},
            "local peering gateway peer in the stack's VCN, to a VCN with 10.9.0.0/16",
        ),
        (
            "list_drg_attachments",
            "core.DrgAttachment",
            {"display_name": "office", "drg_id": "ocid1.drg.x", "vcn_id": "vcn"},
            "attachment office of the stack's VCN to the dynamic routing gateway ocid1.drg.x",
        ),
        (
            "get_object_lifecycle_policy",
            "object_storage.ObjectLifecycleRule",
            {"name": "clean", "action": "DELETE", "time_amount": 1, "time_unit": "DAYS"},
            "lifecycle rule clean of the bucket bucket: DELETE after 1 DAYS",
        ),
    ],
)
def test_what_gives_away_or_deletes_is_said(operation: str, kind: str, fields: dict[str, Any], words: str) -> None:
    extra = {} if kind.endswith("Rule") else {"id": "new"}
    assert found(**{operation: [model(kind, **fields, **extra)]}) == [words]


@pytest.mark.parametrize("row", EVERY_ROW, ids=lambda row: row.token)
def test_calls_and_fields_of_each_row_are_those_of_the_sdk(row: LiveBeside) -> None:
    package, client = CLIENTS[row.service]
    assert hasattr(getattr(import_module(f"oci.{package}"), client), row.operation)
    kind = row.token.rpartition(":")[2]
    fields = model(f"{package}.{MODELS.get(kind, kind)}").swagger_types
    named = {*re.findall(r"\{found\.(\w+)", row.words), *row.renamed.values()}
    assert named <= fields.keys()


def test_texts_of_the_cloud_are_no_templates() -> None:
    gateway = SimpleNamespace(id="g", vcn_id="vcn", display_name="{its[name]}", is_enabled=True)
    gateway.swagger_types = gateway.attribute_map = {}
    assert found(list_internet_gateways=[gateway]) == ["internet gateway {its[name]} in the stack's VCN"]
