# SPDX-License-Identifier: Apache-2.0
"""The offline clouds: resources that the file names exist, other values are unknown, and missing resources cannot be
looked up."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.platforms import require_capability
from components.platform.review import UNKNOWN, OfflineCloud, OfflineStack

FILE = {
    "trainyard:account": "123456789012",
    "trainyard:network": {"subnet": "company-nodes", "zone": "us-east-1c"},
    "trainyard:jobs": {"a": {"inputs": [{"bucket": "pictures"}]}},
}
STACK = OfflineStack("one", FILE)


def ask(name: str, function: str, /, **arguments: Any) -> Any:
    return require_capability(name, OfflineCloud).answer(function, arguments, STACK)


def test_a_name_of_the_file_is_there_once_with_an_id_that_nobody_knows() -> None:
    rows = ask("oci", "oci:Core/getSubnets:getSubnets", compartmentId="c")["subnets"]
    (found,) = (row for row in rows if row["displayName"] == "company-nodes")
    assert found["id"].startswith(UNKNOWN)
    assert ask("oci", "oci:ObjectStorage/getBucket:getBucket", name="pictures", namespace="n")["name"] == "pictures"


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [
        ("oci", "oci:ObjectStorage/getBucket:getBucket", {"name": "given-up", "namespace": "n"}),
        ("oci", "oci:Core/getSubnets:getSubnets", {"compartmentId": "c", "vcnId": "v"}),
        ("oci", "oci:Core/getInstances:getInstances", {}),
        ("aws-dl1", "aws:ec2/getInstances:getInstances", {}),
        ("aws-dl1", "aws:iam/getRole:getRole", {"name": "nodes"}),
        ("openpai", "any:thing/at:all", {}),
    ],
)
def test_what_only_a_cloud_knows_is_refused(name: str, function: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(LookupError):
        ask(name, function, **arguments)


def test_the_account_and_the_zone_are_the_files() -> None:
    assert ask("aws-dl1", "aws:index/getCallerIdentity:getCallerIdentity")["accountId"] == "123456789012"
    zones = ask("aws-dl1", "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings")["locations"]
    assert "us-east-1c" in zones
    assert sorted(zones)[0].startswith(UNKNOWN)


@pytest.mark.parametrize("name", ["oci", "aws-dl1"])
def test_what_another_stack_exports_is_taken_to_be_there(name: str) -> None:
    assert "subnetId" in require_capability(name, OfflineCloud).borrowed()
