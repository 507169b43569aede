# SPDX-License-Identifier: Apache-2.0
"""A small tenancy: root > team > deep, root > other; a user, a run, a service."""

from components.oci.iam.judge import (
    AttachedPolicy,
    Compartments,
    CompiledPolicies,
    Membership,
    Principal,
    Target,
    compile_policies,
)
from components.oci.iam.parse import parse_statement

ROOT = "ocid1.tenancy.oc1..root"
TEAM = "ocid1.compartment.oc1..team"
DEEP = "ocid1.compartment.oc1..deep"
OTHER = "ocid1.compartment.oc1..other"
TREE = Compartments(ROOT, {TEAM: ROOT, DEEP: TEAM, OTHER: ROOT}, {TEAM: "team", DEEP: "deep", OTHER: "other"})

ALICE = Principal(
    "user",
    "ocid1.user.oc1..alice",
    "alice",
    groups=(
        Membership("ocid1.group.oc1..scientists", "scientists"),
        Membership("ocid1.group.oc1..corp", "x y", "Corp"),
    ),
)
LONER = Principal("user", "ocid1.user.oc1..loner", "loner")
RUN = Principal(
    "datasciencejobrun",
    "ocid1.datasciencejobrun.oc1..run",
    compartment=TEAM,
    dynamic_groups=(Membership("ocid1.dynamicgroup.oc1..runs", "runs"),),
)
DATA_SCIENCE = Principal("service", name="datascience")


def policies(*statements: str, attached: str = ROOT) -> CompiledPolicies:
    """The compiled policies with these statements."""
    return compile_policies([AttachedPolicy("p", attached, tuple(map(parse_statement, statements)))], TREE)


def bucket(name: str = "data", compartment: str = TEAM) -> Target:
    """The target of a request for a bucket."""
    return Target(compartment, {"target.bucket.name": name})
