# SPDX-License-Identifier: Apache-2.0
"""Finds machines that an `up` replaces, the key of the stack file that causes it, and what is lost with them.

Pulumi's preview shows the resources, but neither the key nor the loss. The existing machines are read from the stack's
state.

A placement group cannot change on an existing machine: machines start from version 1 of their template, which stays as
long as they do. So a cluster keeps the group of that version. If it shrinks to a single machine, that machine is still
in the group, and AWS does not delete a group with a machine. If it grows from a single machine, it has no group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.aws import ON_DEMAND
from components.aws.machines import MachineImage, Recorded, node_settings
from components.aws.plan import AwsDl1Plan, AwsJobPlan
from components.messages import RefusedError
from components.outputs import Borrowed, Outputs
from schemas.findings import Wrong, at

# An output of the stack: the settings whose order of replacement is in the state.
REPLACED_WITH = "machinesReplacedWith"
PLACE = ("network", "access", "bucket", "logs")

# Key of the stack file -> its values before and now.
_Settings = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Replacing:
    """What a plan's machines would start from. `templates`, `images`: by job."""

    plan: AwsDl1Plan
    zone: str
    images: Mapping[str, MachineImage]
    templates: Mapping[str, str]
    borrowed: Borrowed


def find_replacements(wanted: Replacing, recorded: Recorded, before: Outputs) -> Iterator[Wrong]:
    """A warning for each job whose machines are replaced. Raises RefusedError if the state lacks the order of
    replacement."""
    refused: list[Wrong] = []
    for name, job in wanted.plan.jobs.items():
        machines = recorded.machines(job)
        kept = {node: machines[node] for node in job.cluster.nodes if node in machines}
        template = recorded.one("LaunchTemplate", name, *job.was)
        if not kept or not template:
            continue
        moved = _place_changes(wanted, recorded, template)
        changes = [*moved, *_machine_changes(wanted, name, job, template)]
        if moved and before and REPLACED_WITH not in before:
            message = (
                f"{', '.join(moved)} replaces the machines of the job `{name}`, which an earlier release of trainyard "
                "made. Its state does not say that they go before their network, which AWS deletes only after them"
            )
            remedy = "first bring the stack up without this change: that replaces nothing. Then change it"
            refused.append(Wrong(at("jobs", name, "cluster"), message, remedy))
        elif changes:
            named = ", ".join(f"`{node}` ({machine})" for node, machine in kept.items())
            queue = "the queue stays in the old bucket, so all runs start again"
            if not any(one.startswith("`bucket`") for one in changes):
                queue = "runs in the queue continue on the new machines"
            message = (
                f"the machines of the job `{name}` are replaced, and what trains on them ends as FAILED: {named}. "
                f"Because of {', '.join(changes)}. What lies only on their disks is lost; {queue}"
            )
            remedy = "let its runs end first, or raise their `attempt`, which starts them again on the new machines"
            yield Wrong(at("jobs", name, "cluster"), message, remedy)
    if refused:
        raise RefusedError(refused)


def _changed_keys(settings: _Settings) -> list[str]:
    """Each key whose values differ, with both."""
    values = {key: (_setting_text(before), _setting_text(now)) for key, (before, now) in settings.items()}
    changed = [key for key, (before, now) in values.items() if before != now]
    if "network.cidr" in changed and "network.subnetCidr" in changed:
        changed.remove("network.subnetCidr")  # it is computed if the file does not name it
    return [f"`{key}` ({values[key][0] or 'none'} -> {values[key][1] or 'none'})" for key in changed]


def _place_changes(wanted: Replacing, recorded: Recorded, template: Outputs) -> list[str]:
    """Changed settings of what the machines depend on: their network, access, bucket and logs."""
    vpc, subnet = recorded.one("Vpc", "vpc"), recorded.one("Subnet", "subnet")
    interface, settings = _first_interface(template), node_settings(template)
    has_group = bool(recorded.one("SecurityGroup", "nodes"))
    there = None if has_group else next(iter(interface.get("securityGroups") or ()), None)
    plan, network, borrowed = wanted.plan, wanted.plan.network, wanted.borrowed
    makes = network.create
    profile = f"{plan.team}-{plan.environment}-nodes" if plan.access.create else plan.access.runs_role
    group = borrowed.last("network", "securityGroupId") or network.security_group
    named = None if makes else borrowed.last("network", "subnetId") or network.subnet
    changes: dict[str, tuple[Any, Any]] = {
        "network.vpc": (subnet.get("vpcId") if not vpc else None, network.vpc if makes else None),
        "network.cidr": (vpc.get("cidrBlock"), network.cidr if makes and network.vpc is None else None),
        "network.subnetCidr": (subnet.get("cidrBlock"), network.subnet_cidr if makes else None),
        "network.zone": (subnet.get("availabilityZone"), wanted.zone if makes else None),
        "network.subnet": (None if subnet else interface.get("subnetId"), named),
        "network.securityGroup": (there, None if network.make_security_group else group),
        "access.runs": (
            (template.get("iamInstanceProfile") or {}).get("name"),
            borrowed.last("access", "instanceProfile") or profile,
        ),
    }
    if settings:
        logs = (borrowed.last("logs", "logGroup") or plan.logs.group_name) if plan.logs.enabled else None
        changes["bucket"] = settings.get("bucket"), borrowed.last("bucket", "bucket") or plan.bucket.name
        changes["logs"] = settings.get("logGroup"), logs
    return _changed_keys(changes)


def _machine_changes(wanted: Replacing, name: str, job: AwsJobPlan, template: Outputs) -> list[str]:
    """Changed settings of the machines themselves. The template's name has a digest of these."""
    if template.get("name") == wanted.templates[name]:
        return []
    settings, interface, cluster = node_settings(template), _first_interface(template), job.cluster
    (disk, *_) = template.get("blockDeviceMappings") or [{}]
    reserved = (template.get("capacityReservationSpecification") or {}).get("capacityReservationTarget") or {}
    market = (template.get("instanceMarketOptions") or {}).get("marketType") or ON_DEMAND
    placed = cluster.placement_group or (cluster.name if cluster.make_placement_group else None)
    had_address = _setting_text(interface.get("associatePublicIpAddress")) == "true"
    has_address = cluster.public_address == "automatic"
    changes: dict[str, tuple[Any, Any]] = {
        "shape": (template.get("instanceType"), cluster.instance_type),
        "ami": (template.get("imageId"), wanted.images[name].id),
        "blockStorageGb": ((disk.get("ebs") or {}).get("volumeSize"), cluster.disk_gb),
        "placementGroup": ((template.get("placement") or {}).get("groupName"), placed),
        "reservation": (reserved.get("capacityReservationId"), cluster.reservation),
        "market": (market, cluster.market),
        "publicAddress": ("automatic" if had_address else None, "automatic" if has_address else None),
    }
    if settings:
        changes |= {
            "efa": (settings.get("efaInterfaces"), cluster.efa),
            "stopWhenIdle": (settings.get("stopWhenIdleMinutes"), cluster.stop_when_idle_minutes),
            "sshPort": (settings.get("sshPort"), cluster.ssh_port),
            "release": (settings.get("release"), cluster.release),
            "hostNic": (settings.get("hostNic"), cluster.host_nic),
        }
    return _changed_keys(changes) or ["another launch template"]


def _first_interface(template: Outputs) -> Mapping[str, Any]:
    return next(iter(template.get("networkInterfaces") or ()), {})


def _setting_text(value: Any) -> str | None:
    """A value as text: the engine's numbers are floats, and the provider has some booleans as strings."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)


def keep_placement(plan: AwsDl1Plan, templates: Mapping[str, str], recorded: Recorded) -> AwsDl1Plan:
    """The plan, with a placement group for each cluster whose existing template has one. `templates`: the planned
    names."""
    jobs = {}
    for name, job in plan.jobs.items():
        makes = _has_group(name, job, templates[name], recorded)
        wanted = job.cluster.make_placement_group if makes is None else makes
        jobs[name] = replace(job, cluster=replace(job.cluster, make_placement_group=wanted))
    return replace(plan, jobs=jobs)


def find_unplaced(plan: AwsDl1Plan, templates: Mapping[str, str], recorded: Recorded) -> Iterator[Wrong]:
    """A warning for each cluster that gets more machines and should have a placement group, which its existing template
    lacks."""
    for name, job in plan.jobs.items():
        added = [node for node in job.cluster.nodes if node not in recorded.machines(job)]
        has = _has_group(name, job, templates[name], recorded)
        if added and job.cluster.make_placement_group and has is False:
            message = (
                f"the machines of the job `{name}` start anywhere in their zone, not close together: its first one "
                "began alone, and all start from the same template"
            )
            remedy = (
                "they train all the same; for the fastest network, name a placement group of your own as "
                "`placementGroup`: that replaces the job's machines"
            )
            yield Wrong(at("jobs", name, "cluster"), message, remedy)


def _has_group(name: str, job: AwsJobPlan, template: str, recorded: Recorded) -> bool | None:
    """Whether the existing template has a placement group of the stack. None if there is no template, or a new one
    replaces it."""
    there = recorded.one("LaunchTemplate", name, *job.was)
    if there.get("name") != template:
        return None
    named = (there.get("placement") or {}).get("groupName")
    # The state may have the group even if the template's latest version does not name it.
    return named == job.cluster.name or bool(recorded.one("PlacementGroup", name, *job.was))
