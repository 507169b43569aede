# SPDX-License-Identifier: Apache-2.0
"""The least policy for the deployer, who runs `pulumi up` and `destroy` of this plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table
from components.oci import iam
from components.oci.iam.permissions import known_operations
from components.oci.plan import OciPlan
from components.oci.stack import FlowLog, is_ocid
from components.oci.statements import (
    Line,
    Need,
    group_named,
    location_of_compartment,
    permissions_of,
    policy_lines,
    smallest_grant,
    verb_grant,
    weakest_trust,
)
from components.oci.types import SERVED_TYPES
from components.oci.types.functions import FUNCTIONS
from components.oci.types.live_beside import LIVE_BESIDE
from components.oci.types.oci_resource_type import pascal_case

STEPS = ("create", "read", "update", "delete")
# The kind of what only `trainyard drift` reads.
DRIFT = "drift"
# Location, grant, kinds of resource, and how certain the grant is.
Granted = tuple[iam.Location, iam.Grant, tuple[str, ...], iam.Trust]


def operations_of_kind(kind: str) -> tuple[str, ...]:
    """The operations for a kind of resource that a plan makes, by the names of oci_access.toml. None for other
    kinds."""
    row: Mapping[str, Any] = table("oci_access")["deployer"].get(kind, {})
    steps = STEPS[:-1] if row.get("kept") else STEPS
    found = [
        *(call for token in row.get("makes", ()) for call in calls_of_type(token, steps)),
        *(call for token in row.get("deletes", ()) for call in calls_of_type(token, ("delete",))),
        *(call for token in row.get("looks_up", ()) for call in FUNCTIONS[token].calls),
        *row.get("more", ()),
    ]
    return tuple(dict.fromkeys(found))


def calls_of_type(token: str, steps: tuple[str, ...]) -> Iterator[str]:
    """Every call that these steps of a resource type may make, for any inputs and any change."""
    row = SERVED_TYPES[token]
    for step in steps:
        yield from getattr(row, step)
        for given in row.given.values():
            yield from given.get(step, ())
    if "update" in steps:
        for changed in row.changed.values():
            yield from changed


def drift_calls_of_kind(kind: str) -> Iterator[str]:
    """What `trainyard drift` reads of the resources that the deployer makes, and of what others made beside them.

    The verbs of [drift_verbs] contain the calls whose single permissions are not in the catalog."""
    for token in table("oci_access")["deployer"].get(kind, {}).get("makes", ()):
        if SERVED_TYPES[token].compared is not None:
            yield pascal_case(SERVED_TYPES[token].list_operation)
        for found in (row for row in LIVE_BESIDE if row.beside == token):
            calls = (pascal_case(row.operation) for row in (found, *found.below))
            yield from (call for call in calls if call in known_operations())


def deployer_lines(plan: OciPlan, group: str) -> tuple[Line, ...]:
    """The least policy under which the plan's own deployer can bring it up, take it down and look for its drift."""
    made = _made_kinds(plan)
    needed: dict[tuple[iam.Location, str], Need] = {}
    for kind, place in made:
        calls = [(kind, call) for call in operations_of_kind(kind)]
        for why, call in (*calls, *((DRIFT, call) for call in drift_calls_of_kind(kind))):
            for resource_type, needs, trust in permissions_of(call):
                need = needed.setdefault((place, resource_type), Need())
                need.permissions |= needs
                need.why.append(why)
                need.trusts.append(trust)
    granted: list[Granted] = []
    for (place, resource_type), need in needed.items():
        grant = smallest_grant(resource_type, need)
        granted.append((place, grant, tuple(dict.fromkeys(need.why)), weakest_trust([*need.trusts, grant.trust])))
    for kind, place in made:
        for why, verbs in ((kind, "deployer_verbs"), (DRIFT, "drift_verbs")):
            for verb in table("oci_access")[verbs].get(kind, ()):
                granted.append((place, verb_grant(verb), (why,), "documented"))
    return tuple(
        Line(iam.Statement(group_named("group", group), grant, place), why, trust, attached_to_tenancy=True)
        for place, grant, why, trust in granted
    )


def _made_kinds(plan: OciPlan) -> list[tuple[str, iam.Location]]:
    """The kinds of resource that the deployer makes, and their compartments."""
    here, tenancy = location_of_compartment(plan.compartment), iam.Tenancy()
    network = location_of_compartment(plan.network.compartment or plan.compartment)
    makes_network = plan.network.create and plan.network.vcn is None
    groups = plan.access.make_runs_group or plan.access.make_notebooks_group
    runs = any(job.runs for job in plan.jobs.values())
    joins = any(job.joins_subnet for job in plan.jobs.values())
    on_target = any(job.compute_target for job in plan.jobs.values())
    starts_on_target = any(job.compute_target and job.runs for job in plan.jobs.values())
    makes_flow_log = isinstance(plan.network.flow_log, str)
    root_policies = any(line.attached_to_tenancy for line in policy_lines(plan))
    makes: list[tuple[bool, str, iam.Location]] = [
        (True, DRIFT, tenancy),
        (makes_network, "network", network),
        (plan.network.create, "nodes", network),
        (makes_network and plan.network.nat, "nat", network),
        (plan.access.create and groups, "groups", tenancy),
        (plan.access.create, "policies", tenancy if root_policies else here),
        (plan.access.create and plan.access.home_region is None, "regions", tenancy),
        (plan.bucket.create, "bucket", here),
        (plan.bucket.create and not plan.bucket.keep, "bucket that goes", here),
        (plan.bucket.create and plan.bucket.key is not None, "key", here),
        (plan.registry.create, "registry", here),
        (plan.logs.create, "logs", here),
        (makes_flow_log, "flow log", here),
        (makes_flow_log, "flow log subnet", network),
        (plan.vault is not None, "secrets", here),
        (plan.project.create, "project", here),
        (bool(plan.jobs), "job", here),
        (joins, "job subnet", network),
        (any(target.existing is None for target in plan.compute_targets.values()), "compute target", here),
        (on_target, "job on a target", here),
        (bool(plan.jobs) and plan.logs.enabled, "job logs", here),
        (runs, "run", here),
        (any(job.joins_subnet and job.runs for job in plan.jobs.values()), "subnet", network),
        (starts_on_target, "run on a target", here),
        (runs and plan.logs.enabled, "run logs", here),
    ]
    return [*((kind, place) for wanted, kind, place in makes if wanted), *_looked_up_kinds(plan, here, network)]


def _looked_up_kinds(plan: OciPlan, here: iam.Location, network: iam.Location) -> Iterator[tuple[str, iam.Location]]:
    """The existing resources that the deployer looks up, by OCID or name (in components/oci/resources/existing.py)."""
    flow_log = plan.network.flow_log if isinstance(plan.network.flow_log, FlowLog) else None
    taken = (
        (plan.network.vcn, "VCN", network),
        (plan.network.subnet, "subnet", network),
        (plan.network.route_table, "route table", network),
        (flow_log.group if flow_log else None, "log group", network),
        (flow_log.log if flow_log else None, "log", network),
        (plan.logs.group, "log group", here),
        (plan.logs.log, "log", here),
        (plan.project.project, "project", here),
        *((target.existing, "compute target", here) for target in plan.compute_targets.values()),
    )
    for text, kind, place in taken:
        if text is not None:
            yield f"existing {kind}" if is_ocid(text) else f"{kind} by name", place
    if not plan.bucket.create and "bucket" not in plan.taken:
        yield "existing bucket", here
