# SPDX-License-Identifier: Apache-2.0
"""Existing resources, of this account or of another stack, are used and never made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.programs.conftest import Record, Written
from tests.support.examples import PLATFORM

Config = dict[str, Any]


def kinds(resources: Any) -> set[str]:
    return {resource.kind for resource in resources}


def test_with_existing_resources_only_the_job_and_its_run_are_made(record: Record) -> None:
    recording = record("oci-existing")
    assert kinds(recording.made()) == {"Job", "Run"}
    assert not [resource for resource in recording.resources if resource.name == "home"]
    assert recording.exports["portsNeeded"] == ["29400", "29500-29563"]
    assert not {"portsOpen", "subnetCidr", "vcnId"} & set(recording.exports)


def test_a_team_uses_all_resources_of_its_platform_stack(record: Record) -> None:
    platform = record("oci-platform").exports
    recording = record("oci-team", references={PLATFORM: platform})
    assert recording.references == (PLATFORM,)
    assert kinds(recording.made()) == {"Job", "Run"}
    job = recording.one("Job")
    assert job.inputs["projectId"] == platform["projectId"]
    assert job.inputs["jobInfrastructureConfigurationDetails"]["subnetId"] == platform["subnetId"]
    assert job.inputs["jobLogConfigurationDetails"]["logId"] == platform["logId"]
    image = job.inputs["jobEnvironmentConfigurationDetails"]["image"]
    assert image == f"{platform['imagePushAddress']}:clicks-1.0"
    environment = recording.one("Run").inputs["nodes"][0]["environment"]
    assert environment["OCI__WORK_DIR"] == f"{platform['bucketUri']}/clicks/base/1"
    assert recording.exports["runsGroup"] == platform["runsGroup"]


@pytest.mark.parametrize(
    ("concern", "made"),
    [
        ("network", {"Vcn", "Subnet", "SecurityList", "RouteTable", "ServiceGateway"}),
        # A stack that grants access to a bucket and a repository has to make or name them.
        ("access", {"DynamicGroup", "Policy", "Bucket", "ContainerRepository"}),
        ("bucket", {"Bucket"}),
        ("registry", {"ContainerRepository"}),
        ("logs", {"LogGroup", "Log"}),
        ("project", {"Project"}),
    ],
)
def test_a_concern_that_is_not_taken_is_made_by_the_stack(
    concern: str, made: set[str], record: Record, changed: Written
) -> None:
    def own(config: Config) -> None:
        taken = config["trainyard:uses"]["take"]
        taken.remove(concern)
        if concern == "access":
            taken[:] = [other for other in taken if other not in ("bucket", "registry")]
            tenancy = "ocid1.tenancy.oc1..aaaaaaaa5ht5rzh6lhj3ybgbqwbxgmdkob7kyfkwpemy6rgxtk3wvnslxbux"
            config.update({"trainyard:tenancy": tenancy, "trainyard:access": {"users": {"group": "scientists"}}})

    platform = record("oci-platform").exports
    recording = changed("oci-team", own, references={PLATFORM: platform})
    assert kinds(recording.made()) == {"Job", "Run"} | made


def test_a_subnet_in_an_existing_vcn_makes_no_gateway(record: Record) -> None:
    recording = record("oci-existing-vcn")
    assert not {"Vcn", "ServiceGateway", "NatGateway", "RouteTable", "LogGroup"} & kinds(recording.made())
    log = recording.one("Log").inputs
    assert log["logGroupId"] == "ocid1.loggroup.oc1.iad.amaaaaaaexampleloggrouprisk"


def test_without_logs_a_job_names_none(record: Record) -> None:
    recording = record("oci-tensorflow-mirrored")
    assert not {"LogGroup", "Log"} & kinds(recording.made())
    job = recording.one("Job")
    assert "jobLogConfigurationDetails" not in job.inputs
    assert not {"log", "logGroup"} & set(recording.one("Run").inputs)


def test_an_existing_dynamic_group_is_named_and_not_made(changed: Written) -> None:
    def named(config: Config) -> None:
        config["trainyard:access"]["runs"] = "company-runs"

    recording = changed("oci-pytorch-ddp", named)
    assert recording.of("DynamicGroup") == {}
    statements = recording.one("Policy").inputs["statements"]
    assert any(" dynamic-group company-runs " in statement for statement in statements)
