# SPDX-License-Identifier: Apache-2.0
"""The deployer's least policy: enough for every call, and no permissions for resources that are not made."""

from __future__ import annotations

from dataclasses import replace

from catalog.tables import table
from components.oci import iam
from components.oci.deployer import DRIFT, deployer_lines, drift_calls_of_kind, operations_of_kind
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import find_operation
from components.oci.plan import OciPlan
from components.oci.stack import (
    ComputeTarget,
    ExistingLog,
    FlowLog,
    OciAccess,
    OciLogs,
    OciNetwork,
    Project,
    Users,
    Vault,
)
from components.oci.statements import permissions_of
from components.oci.types.live_beside import LIVE_BESIDE
from components.oci.types.oci_resource_type import pascal_case
from schemas.model import Bucket, Registry, Role, Secret, Shape
from tests.support.samples import COMPARTMENT, NETWORKS, job, own, plan

OTHER_TARGETS = ("internet gateway", "private ip", "local peering")
POOL = {"pool": ComputeTarget(Shape("VM.GPU.A10.1"), 4)}
VAULT = Vault("ocid1.vault.a", "ocid1.key.a", {"token": Secret()})

# Cases that no plan causes, such as gateways and groups that no plan makes.
NOT_OURS = {
    *(f"{call}RouteTable:{kind}" for call in ("Create", "Delete") for kind in OTHER_TARGETS),
    *(f"UpdateRouteTable:{how} {kind}" for how in ("added", "removed") for kind in OTHER_TARGETS),
    *(f"{how}{kind}Gateway:route table" for how in ("Create", "Update") for kind in ("Service", "Nat")),
    "UpdateSubnet:dhcp options", "CreateJobRun:security group", "CreateJobRun:auto log creation",
}  # fmt: skip


def granted(of: OciPlan, place: iam.Location) -> frozenset[str]:
    found = deployer_lines(of, "platform-team")
    return frozenset().union(
        *(iam.permissions_of_grant(one.statement.grant) for one in found if one.statement.location == place)
    )


def test_the_deployer_may_do_all_that_up_and_destroy_call() -> None:
    made = plan(
        network=OciNetwork(nat=True), vault=VAULT, bucket=Bucket(keep=False), compute_targets=POOL,
        jobs={"train": job(), "pooled": replace(own(job()), layout="node-groups", compute_target="pool")},
    )  # fmt: skip
    here = granted(made, iam.CompartmentId(COMPARTMENT))
    tenancy = granted(made, iam.Tenancy())
    for kind in table("oci_access")["deployer"]:
        allowed = tenancy if kind in ("groups", "regions", "drift") else here
        for named in (*operations_of_kind(kind), *drift_calls_of_kind(kind)):
            for resource_type, wanted, _ in permissions_of(named):
                assert wanted <= allowed, (kind, named, resource_type)


def test_no_circumstance_of_a_call_is_forgotten() -> None:
    """A route table that leads to a NAT gateway takes more: each such case is listed, or ruled out above."""
    listed = {named for kind in table("oci_access")["deployer"] for named in operations_of_kind(kind)}
    called = {named for named in listed if ":" not in named}
    cases = {f"{named}:{case}" for named in called for case in find_operation(named).conditional}
    assert cases - listed == NOT_OURS
    assert {named.partition(":")[0] for named in listed - called} <= called


def test_each_call_beside_a_stacks_resources_has_its_permissions_or_a_verb() -> None:
    beside = [call for row in LIVE_BESIDE for call in (row, *row.below)]
    calls = {pascal_case(row.operation) for row in beside}
    made = {call for kind in table("oci_access")["deployer"] for call in drift_calls_of_kind(kind)}
    assert calls - made == {"ListLocalPeeringGateways", "ListDrgAttachments"}
    verbs = ["inspect local-peering-gateways", "inspect drg-attachments"]
    assert table("oci_access")["drift_verbs"] == {"network": verbs}


def test_a_subnet_in_an_existing_vcn_takes_no_right_to_make_networks() -> None:
    made = plan(
        network=OciNetwork(vcn="ocid1.vcn.a", subnet_cidr="10.0.1.0/24", route_table="ocid1.routetable.a", nat=True)
    )
    here = granted(made, iam.CompartmentId(COMPARTMENT))
    assert {"SUBNET_CREATE", "SECURITY_LIST_CREATE", "VCN_ATTACH", "ROUTE_TABLE_ATTACH"} <= here
    assert not here & {"VCN_CREATE", "VCN_DELETE", "ROUTE_TABLE_CREATE", "SERVICE_GATEWAY_CREATE", "NAT_GATEWAY_CREATE"}


def test_a_bucket_that_is_kept_cannot_be_deleted() -> None:
    for keep in (True, False):
        here = granted(plan(bucket=Bucket(keep=keep)), iam.CompartmentId(COMPARTMENT))
        assert "BUCKET_CREATE" in here
        assert ("BUCKET_DELETE" in here) is not keep


def test_whoever_makes_secrets_may_not_read_them() -> None:
    here = granted(plan(vault=VAULT), iam.CompartmentId(COMPARTMENT))
    assert "SECRET_CREATE" in here
    assert "SECRET_BUNDLE_READ" not in here


def test_the_deployers_group_may_lie_in_a_domain_or_go_by_its_ocid() -> None:
    for group, said in (
        ("Eng/ops team", "group 'Eng'/'ops team'"),
        ("ocid1.group.oc1..a", "group id ocid1.group.oc1..a"),
    ):
        for line in deployer_lines(plan(), group):
            assert line.text.startswith(f"Allow {said} to ")
            assert parse_statement(line.text) == line.statement


def test_statements_are_policy_language_and_say_what_for() -> None:
    for line in deployer_lines(plan(), "platform-team"):
        assert parse_statement(line.text) == line.statement
        assert line.why


def test_who_makes_only_jobs_needs_no_right_on_anything_else() -> None:
    made = plan(
        network=OciNetwork(subnet="ocid1.subnet.a"),
        access=OciAccess(users=Users(group="scientists"), existing=True, runs="runs"),
        bucket=Bucket(existing="a"),
        registry=Registry(existing="a"),
        logs=OciLogs(existing=ExistingLog("ocid1.loggroup.a", "ocid1.log.a")),
        project=Project(existing="ocid1.datascienceproject.a"),
    )
    grants = {
        line.statement.grant: line.why
        for line in deployer_lines(made, "platform-team")
        if isinstance(line.statement.grant, iam.VerbGrant)
    }
    assert {grant.verb for grant, why in grants.items() if why == (DRIFT,)} == {"inspect"}
    types = {grant.resource_type for grant, why in grants.items() if why != (DRIFT,)}
    assert "data-science-jobs" in types
    assert not types & {"vcns", "policies", "dynamic-groups", "buckets", "virtual-network-family"}
    in_tenancy = [line for line in deployer_lines(made, "team") if line.statement.location == iam.Tenancy()]
    assert {line.why for line in in_tenancy} == {(DRIFT,)}


def test_policies_are_written_where_they_are_attached() -> None:
    in_compartment = plan()
    assert "POLICY_CREATE" in granted(in_compartment, iam.CompartmentId(COMPARTMENT))
    assert "POLICY_CREATE" not in granted(in_compartment, iam.Tenancy())
    tenancy_wide = plan(access=OciAccess(mode="proof-of-concept"))
    assert "POLICY_CREATE" in granted(tenancy_wide, iam.Tenancy())
    assert "POLICY_CREATE" not in granted(tenancy_wide, iam.CompartmentId(COMPARTMENT))


def test_what_exists_is_read_by_its_ocid_and_listed_by_its_name() -> None:
    by_ocid = plan(
        network=OciNetwork(vcn="ocid1.vcn.oc1.iad.a", subnet_cidr="10.20.1.0/24"),
        logs=OciLogs(existing=ExistingLog("ocid1.loggroup.oc1.iad.a", "ocid1.log.oc1.iad.a")),
        project=Project(existing="ocid1.datascienceproject.oc1.iad.a"),
    )
    by_name = plan(
        network=OciNetwork(vcn="company", route_table="routes", subnet_cidr="10.20.1.0/24"),
        logs=OciLogs(existing=ExistingLog("company", "runs")),
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


def test_a_flow_log_takes_the_right_to_update_the_subnet_and_one_that_is_there_only_a_look() -> None:
    vcn = OciNetwork(subnet="ocid1.subnet.a", compartment=NETWORKS, flow_log=True)
    there, here = iam.CompartmentId(NETWORKS), iam.CompartmentId(COMPARTMENT)
    made = plan(network=vcn)
    assert "SUBNET_UPDATE" in granted(made, there)
    assert "SUBNET_UPDATE" not in granted(plan(network=replace(vcn, flow_log=False)), there)
    assert "LOG_GROUP_CREATE" in granted(made, here)
    named = granted(plan(network=replace(vcn, flow_log=FlowLog("ocid1.loggroup.a", "ocid1.log.a"))), there)
    assert "LOG_GROUP_READ" in named
    assert not named & {"SUBNET_UPDATE", "LOG_GROUP_CREATE"}


def test_a_compute_target_is_managed_where_it_is_made_and_read_where_it_is_there() -> None:
    alone = replace(own(job(roles={"main": 1})), compute_target="pool")
    in_groups = {"train": replace(alone, layout="node-groups", roles={"main": Role(1), "worker": Role(3)})}
    theirs = {"compute_targets": POOL, "network": OciNetwork(subnet="ocid1.subnet.a", compartment=NETWORKS)}
    made = plan(jobs={"train": alone}, **theirs)
    here = granted(made, iam.CompartmentId(COMPARTMENT))
    assert {"DATA_SCIENCE_COMPUTE_TARGET_CREATE", "DATA_SCIENCE_COMPUTE_TARGET_DELETE"} <= here
    # The node of a single-node run on a target is in no subnet.
    assert "SUBNET_ATTACH" not in granted(made, iam.CompartmentId(NETWORKS))
    assert "SUBNET_ATTACH" in granted(plan(jobs=in_groups, **theirs), iam.CompartmentId(NETWORKS))
    for name, read in (("ocid1.datasciencecomputetarget.a", "READ"), ("their-pool", "INSPECT")):
        there = {"pool": ComputeTarget(existing=name)}
        named = granted(plan(compute_targets=there, jobs=in_groups), iam.CompartmentId(COMPARTMENT))
        assert f"DATA_SCIENCE_COMPUTE_TARGET_{read}" in named
        assert "DATA_SCIENCE_COMPUTE_TARGET_CREATE" not in named
    assert not [one for one in granted(plan(), iam.CompartmentId(COMPARTMENT)) if "COMPUTE_TARGET" in one]
