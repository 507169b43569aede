# SPDX-License-Identifier: Apache-2.0
"""The deployer's own least policy: enough for every call, and nothing for what is not made."""

from __future__ import annotations

import iam
from catalog.tables import table
from components.oci.deployer import deployer_lines
from components.oci.needs import permissions_of
from components.plan.model import Plan
from iam.parse import parse
from schemas.model import Access, Bucket, ExistingLog, Logs, Network, Project, Registry, Users
from tests.unit.components.samples import COMPARTMENT, plan


def granted(of: Plan, place: iam.Location) -> frozenset[str]:
    found = deployer_lines(of, "platform-team")
    return frozenset().union(*(iam.grants(one.statement.grant) for one in found if one.statement.location == place))


def test_the_deployer_may_do_all_that_up_and_destroy_call() -> None:
    made = plan(network=Network(nat=True))
    here = granted(made, iam.CompartmentId(COMPARTMENT))
    tenancy = granted(made, iam.Tenancy())
    for kind, operations in table("oci_access")["deployer"].items():
        allowed = tenancy if kind in ("groups", "regions") else here
        for operation in operations:
            for resource_type, wanted, _ in permissions_of(operation):
                assert wanted <= allowed, (kind, operation, resource_type)


def test_statements_are_policy_language_and_say_what_for() -> None:
    for line in deployer_lines(plan(), "platform-team"):
        assert parse(line.text) == line.statement
        assert line.why


def test_who_makes_only_jobs_needs_no_right_on_anything_else() -> None:
    made = plan(
        network=Network(subnet="ocid1.subnet.a"),
        access=Access(users=Users(group="scientists"), existing=True, runs="runs"),
        bucket=Bucket(existing="a"),
        registry=Registry(existing="a"),
        logs=Logs(existing=ExistingLog("ocid1.loggroup.a", "ocid1.log.a")),
        project=Project(existing="ocid1.datascienceproject.a"),
    )
    types = {
        line.statement.grant.resource_type
        for line in deployer_lines(made, "platform-team")
        if isinstance(line.statement.grant, iam.VerbGrant)
    }
    assert "data-science-jobs" in types
    assert not types & {"vcns", "policies", "dynamic-groups", "buckets", "virtual-network-family"}
    assert not [line for line in deployer_lines(made, "team") if line.statement.location == iam.Tenancy()]


def test_policies_are_written_where_they_are_attached() -> None:
    in_compartment = plan()
    assert "POLICY_CREATE" in granted(in_compartment, iam.CompartmentId(COMPARTMENT))
    assert "POLICY_CREATE" not in granted(in_compartment, iam.Tenancy())
    tenancy_wide = plan(access=Access(mode="proof-of-concept"))
    assert "POLICY_CREATE" in granted(tenancy_wide, iam.Tenancy())
    assert "POLICY_CREATE" not in granted(tenancy_wide, iam.CompartmentId(COMPARTMENT))


def test_what_exists_is_read_by_its_ocid_and_listed_by_its_name() -> None:
    by_ocid = plan(
        network=Network(vcn="ocid1.vcn.oc1.iad.a", subnet_cidr="10.20.1.0/24"),
        logs=Logs(existing=ExistingLog("ocid1.loggroup.oc1.iad.a", "ocid1.log.oc1.iad.a")),
        project=Project(existing="ocid1.datascienceproject.oc1.iad.a"),
    )
    by_name = plan(
        network=Network(vcn="company", route_table="routes", subnet_cidr="10.20.1.0/24"),
        logs=Logs(existing=ExistingLog("company", "runs")),
        project=Project(existing="company"),
        bucket=Bucket(existing="company"),
    )
    asked = {why for line in deployer_lines(by_ocid, "team") for why in line.why}
    assert {"existing VCN", "existing log group", "existing log", "existing project"} <= asked
    assert not [why for why in asked if why.endswith("by name")]
    asked = {why for line in deployer_lines(by_name, "team") for why in line.why}
    assert {"VCN by name", "route table by name", "log group by name", "log by name", "project by name"} <= asked
    assert "BUCKET_READ" in granted(by_name, iam.CompartmentId(COMPARTMENT))
    assert "DATA_SCIENCE_PROJECT_INSPECT" in granted(by_name, iam.CompartmentId(COMPARTMENT))
