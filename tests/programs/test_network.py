# SPDX-License-Identifier: Apache-2.0
"""The network that whole programs make."""

from __future__ import annotations

from typing import Any

from tests.programs.conftest import Written

Config = dict[str, Any]


def test_rules_beyond_the_limit_go_into_another_list_of_the_same_subnet(changed: Written) -> None:
    def many(config: Config) -> None:
        jobs = config["trainyard:jobs"]
        for number in range(210):
            ports = {"rendezvous": 20_000 + 2 * number}
            jobs[f"job-{number}"] = {**jobs["resnet"], "ports": ports, "runs": {}}

    recording = changed("oci-pytorch-ddp", many)
    found = recording.of("SecurityList")
    assert set(found) == {"rules", "rules-2"}
    # OCI's own default limit.
    assert (
        len(found["rules"].inputs["ingressSecurityRules"]) == len(found["rules"].inputs["egressSecurityRules"]) == 200
    )
    assert found["rules-2"].inputs["ingressSecurityRules"]
    [subnet] = recording.of("Subnet").values()
    assert len(subnet.inputs["securityListIds"]) == 2


def test_a_flow_log_records_the_subnet_in_the_stacks_log_group(changed: Written) -> None:
    def recorded(config: Config) -> None:
        config["trainyard:network"] = {**config.get("trainyard:network", {}), "flowLog": True}

    recording = changed("oci-pytorch-ddp", recorded)
    logs = recording.of("Log")
    assert set(logs) == {"log", "flow-log"}
    flow_log = logs["flow-log"].inputs
    assert flow_log["logType"] == "SERVICE"
    assert flow_log["logGroupId"] == logs["log"].inputs["logGroupId"]
    source = flow_log["configuration"]["source"]
    assert (source["service"], source["category"], source["sourceType"]) == ("flowlogs", "all", "OCISERVICE")
    assert source["resource"] == recording.exports["subnetId"]
    assert set(changed("oci-pytorch-ddp", lambda config: None).of("Log")) == {"log"}


def test_an_existing_flow_log_is_looked_up_and_not_made(changed: Written) -> None:
    there = {"group": "ocid1.loggroup.oc1.iad.networks", "log": "ocid1.log.oc1.iad.flows"}

    def named(config: Config) -> None:
        config["trainyard:network"] = {**config.get("trainyard:network", {}), "flowLog": there}

    assert set(changed("oci-pytorch-ddp", named).of("Log")) == {"log"}
