# SPDX-License-Identifier: Apache-2.0
"""The network that whole programs make."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pulumi

from components.aws.plan import AwsNetworkPlan, aws_dl1_plan
from components.aws.resources.network import _reasons_by_internet_rule
from components.oci.resources.network import Services, _list_rule
from components.oci.rules import security_rules
from components.plan.build import plan_file
from components.plan.model import INTERNET, SUBNET, PortRule
from schemas.model import PortRange
from tests.programs.conftest import Written
from tests.support.examples import STACKS
from tests.support.samples import plan

Config = dict[str, Any]


def aws_network() -> AwsNetworkPlan:
    return aws_dl1_plan(plan_file(STACKS / "Pulumi.aws-dl1-resnet.yaml", print)).network


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


def test_a_rule_of_udp_has_its_number_and_its_options() -> None:
    ports = PortRange(4791, 4791)
    made = security_rules(replace(plan().network, rules=(PortRule(SUBNET, SUBNET, ports, "RoCE", "udp"),)))

    async def listed() -> list[Any]:
        # An output needs an event loop, and an earlier test may have closed the thread's own.
        services = Services(pulumi.Output.from_input("id"), pulumi.Output.from_input("all-services"))
        return [_list_rule(made.ingress[0], services), _list_rule(made.egress[0], services)]

    for rule in asyncio.run(listed()):
        assert (rule["protocol"], rule["udp_options"]) == ("17", {"min": 4791, "max": 4791})
        assert "tcp_options" not in rule


def test_rules_of_udp_to_the_internet_are_others_on_aws_too() -> None:
    ports = PortRange(443, 443)
    rules = (PortRule(SUBNET, INTERNET, ports, "git"), PortRule(SUBNET, INTERNET, ports, "QUIC", "udp"))
    network = replace(aws_network(), rules=rules)
    assert _reasons_by_internet_rule(network) == {("tcp", ports): ["git"], ("udp", ports): ["QUIC"]}


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
