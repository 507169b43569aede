# SPDX-License-Identifier: Apache-2.0
"""Existing resources are named by OCID or by name, and looked up before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.programs.conftest import Record, Written
from tests.support.examples import PLATFORM
from tests.support.recorder.client import ProgramError

Config = dict[str, Any]


def _named(config: Config, name: str) -> None:
    config["trainyard:network"] = {"subnet": name}
    config["trainyard:logs"] = {"existing": {"group": name, "log": name}}
    config["trainyard:project"] = {"existing": name}


def test_names_become_ocids(changed: Written) -> None:
    recording = changed("oci-existing", lambda config: _named(config, "company"))
    job = recording.one("Job").inputs
    assert job["projectId"] == "ocid1.datascienceproject.oc1..company-a"
    assert job["jobInfrastructureConfigurationDetails"]["subnetId"] == "ocid1.subnet.oc1..company-a"
    logs = job["jobLogConfigurationDetails"]
    assert (logs["logGroupId"], logs["logId"]) == ("ocid1.loggroup.oc1..company-a", "ocid1.log.oc1..company-a")
    assert recording.exports["subnetId"] == "ocid1.subnet.oc1..company-a"


def test_a_subnet_is_made_in_a_vcn_with_a_route_table_by_their_names(changed: Written) -> None:
    def named(config: Config) -> None:
        config["trainyard:network"] |= {"vcn": "company", "routeTable": "company"}

    subnet = changed("oci-existing-vcn", named).one("Subnet").inputs
    assert subnet["vcnId"] == "ocid1.vcn.oc1..company-a"
    assert subnet["routeTableId"] == "ocid1.routetable.oc1..company-a"


def test_a_subnet_outside_of_the_vcn_is_refused_before_anything_is_made(changed: Written) -> None:
    def placed(cidr: str) -> Any:
        return lambda config: config["trainyard:network"].update({"subnetCidr": cidr})

    assert changed("oci-existing-vcn", placed("10.9.0.0/24")).one("Subnet").inputs["cidrBlock"] == "10.9.0.0/24"
    with pytest.raises(ProgramError) as refused:
        changed("oci-existing-vcn", placed("10.77.0.0/24"))
    assert "10.77.0.0/24 lies outside of the VCN's addresses: 10.0.0.0/16, 10.9.0.0/24" in str(refused.value)
    assert "Pulumi.oci-existing-vcn.yaml:" in str(refused.value)


def test_a_subnet_outside_of_the_vpc_is_refused_too(changed: Written) -> None:
    def placed(config: Config) -> None:
        config["trainyard:network"] = {"vpc": "vpc-0c0a1b2c3d4e5f601", "subnetCidr": "192.168.7.0/24"}

    with pytest.raises(ProgramError) as refused:
        changed("aws-dl1-single-node", placed)
    assert "192.168.7.0/24 lies outside of the VPC's addresses: 10.0.0.0/8" in str(refused.value)


def test_names_are_looked_up_in_the_networks_compartment(changed: Written) -> None:
    def named(config: Config) -> None:
        config["trainyard:network"]["vcn"] = "company"

    recording = changed("oci-existing-vcn", named)
    (asked,) = (row["arguments"] for row in recording.invokes if row["function"].endswith(":getVcns"))
    assert asked["compartmentId"] == "ocid1.compartment.oc1..aaaaaaaaexamplecompartmentnetworks"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("compny", "subnet in ocid1.compartment.oc1..aaaaaaaaqa3fdyvnsps4m4cxbrubespqea6ex72r5ddlzdt7f3dgpjyxynbn"),
        ("compny", "did you mean `company`?"),
        ("twice", "2 subnets are called `twice`: ocid1.subnet.oc1..twice-b, ocid1.subnet.oc1..twice-c"),
        ("twice", "give the OCID of the one you mean"),
        ("ocid1.subnet.oc1.iad.nowhere", "404-NotAuthorizedOrNotFound, Authorization failed"),
        ("ocid1.subnet.oc1.iad.nowhere", "`trainyard access` prints what the deployer needs"),
        ("ocid1.subnet.oc1.iad.deleted", "is deleted"),
    ],
)
def test_a_missing_resource_is_reported_with_its_line(name: str, said: str, changed: Written) -> None:
    def wrong(config: Config) -> None:
        config["trainyard:network"] = {"subnet": name}

    with pytest.raises(ProgramError) as refused:
        changed("oci-existing", wrong)
    assert said in str(refused.value)
    assert "Pulumi.oci-existing.yaml:" in str(refused.value)
    assert "trainyard:network.subnet: " in str(refused.value)


def test_all_missing_resources_are_reported_at_once(changed: Written) -> None:
    def wrong(config: Config) -> None:
        _named(config, "compny")
        config["trainyard:bucket"] = {"existing": "nowhere"}

    with pytest.raises(ProgramError) as refused:
        changed("oci-existing", wrong)
    for key in ("network.subnet", "logs.existing.group", "project.existing", "bucket.existing"):
        assert f"trainyard:{key}: " in str(refused.value)
    assert "trainyard:logs.existing.log: " not in str(refused.value), "in a group that is not there no log is sought"


def test_a_stack_that_makes_everything_looks_nothing_up(record: Record) -> None:
    asked = {row["function"].rpartition(":")[2] for row in record("oci-pytorch-ddp").invokes}
    # The last are the engine's own answers: this stack's outputs and resources as they were.
    own = {"readStackOutputs", "readStackResourceOutputs"}
    assert asked == {"getNamespace", "getServices", "getRegionSubscriptions"} | own


def test_a_missing_stack_is_reported(changed: Written) -> None:
    with pytest.raises(ProgramError) as refused:
        changed("oci-team", lambda config: None, references={})
    assert f'the stack `{PLATFORM}` cannot be read: unknown stack "{PLATFORM}"' in str(refused.value)
    assert "trainyard:uses.stack: " in str(refused.value)


def test_a_used_stack_that_was_never_up_is_reported_with_its_missing_outputs(changed: Written) -> None:
    with pytest.raises(ProgramError) as refused:
        changed("oci-team", lambda config: None, references={PLATFORM: {"bucket": "there"}})
    assert f"the stack `{PLATFORM}` does not export `subnetId`, `runsGroup`, `imagePushAddress`" in str(refused.value)
    assert "`pulumi up -s oci-platform`" in str(refused.value)


def test_a_used_stack_needs_only_the_outputs_that_are_taken(changed: Written) -> None:
    def network_only(config: Config) -> None:
        tenancy = "ocid1.tenancy.oc1..aaaaaaaa5ht5rzh6lhj3ybgbqwbxgmdkob7kyfkwpemy6rgxtk3wvnslxbux"
        config |= {"trainyard:tenancy": tenancy, "trainyard:access": {"users": {"group": "scientists"}}}
        config["trainyard:uses"]["take"] = ["network"]

    recording = changed("oci-team", network_only, references={PLATFORM: {"subnetId": "ocid1.subnet.oc1..theirs"}})
    assert recording.exports["subnetId"] == "ocid1.subnet.oc1..theirs"
