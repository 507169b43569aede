# SPDX-License-Identifier: Apache-2.0
"""Looks up every existing resource that a stack names: names become OCIDs. Fails before anything is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pulumi_oci as oci

from catalog.tables import table
from components.messages import RefusedError
from components.oci.plan import OciPlan
from components.oci.stack import FlowLog, is_ocid
from components.outputs import PROTECTED, Outputs, is_ours, last_outputs, unless_refused
from schemas.each import lies_outside
from schemas.findings import Path, Wrong, at
from schemas.name_suggestions import count_noun, nearest_name

GONE = frozenset({"TERMINATING", "TERMINATED", "DELETING", "DELETED"})
# The cloud's own message, without the text that engine and provider add.
_ANSWER = re.compile(r"\b\d{3}[ -][A-Za-z]+[^\n]*")
_MAY_BE_UNSEEN = "correct it, or allow the deployer to read it: `trainyard access` prints what the deployer needs"
# Outputs whose OCIDs contain the stack's region, and what stands before it in addresses of the console.
_REGIONAL = ("projectId", "subnetId", "logGroupId")
_IN_REGION = "?region="


@dataclass(frozen=True)
class ExistingKind:
    """How to look up one kind of resource: all of a compartment or group, and one by its OCID if OCI's provider can do
    that."""

    words: str
    lie_in: Callable[[str], Sequence[Any]]
    read: Callable[[str, str], Any] | None = None


VCN = ExistingKind(
    "VCN",
    lambda place: oci.core.get_vcns(compartment_id=place).virtual_networks,
    lambda ocid, _: oci.core.get_vcn(vcn_id=ocid),
)
SUBNET = ExistingKind(
    "subnet",
    lambda place: oci.core.get_subnets(compartment_id=place).subnets,
    lambda ocid, _: oci.core.get_subnet(subnet_id=ocid),
)
ROUTE_TABLE = ExistingKind("route table", lambda place: oci.core.get_route_tables(compartment_id=place).route_tables)
LOG_GROUP = ExistingKind(
    "log group",
    lambda place: oci.logging.get_log_groups(compartment_id=place).log_groups,
    lambda ocid, _: oci.logging.get_log_group(log_group_id=ocid),
)
LOG = ExistingKind(
    "log",
    lambda group: oci.logging.get_logs(log_group_id=group).logs,
    lambda ocid, group: oci.logging.get_log(log_group_id=group, log_id=ocid),
)
PROJECT = ExistingKind(
    "project",
    lambda place: oci.datascience.get_projects(compartment_id=place).projects,
    lambda ocid, _: oci.datascience.get_project(project_id=ocid),
)

COMPUTE_TARGET = ExistingKind(
    "compute target",
    lambda place: oci.datascience.get_compute_targets(compartment_id=place).compute_targets,
    lambda ocid, _: oci.datascience.get_compute_target(compute_target_id=ocid),
)


def resolve_existing(plan: OciPlan) -> OciPlan:
    """The plan with the OCIDs of existing resources. Raises RefusedError, which lists all problems."""
    search, here = _Search(), plan.compartment or ""
    project = search.one(PROJECT, plan.project.project, at("project", "existing"), here)
    place = plan.network.compartment or here
    vcn = search.one(VCN, plan.network.vcn, at("network", "vcn"), place)
    if isinstance(plan.network.flow_log, FlowLog):
        _search_log(search, plan.network.flow_log.group, plan.network.flow_log.log, at("network", "flowLog"), place)
    if vcn and not plan.network.subnet:
        search.addresses(vcn, plan.network.subnet_cidr)
    subnet = search.one(SUBNET, plan.network.subnet, at("network", "subnet"), place)
    route_table = search.one(ROUTE_TABLE, plan.network.route_table, at("network", "routeTable"), place)
    group, log = _search_log(search, plan.logs.group, plan.logs.log, at("logs", "existing"), here)
    made = replace(
        plan,
        network=replace(plan.network, vcn=vcn, subnet=subnet, route_table=route_table),
        logs=replace(plan.logs, group=group, log=log),
        project=replace(plan.project, project=project),
        compute_targets={
            key: replace(
                target,
                existing=search.one(COMPUTE_TARGET, target.existing, at("computeTargets", key, "existing"), here),
            )
            for key, target in plan.compute_targets.items()
        },
    )
    if not plan.bucket.create and "bucket" not in plan.taken:
        search.bucket(plan.bucket.name)
    if search.wrongs:
        raise RefusedError(search.wrongs)
    return made


def _search_log(
    search: _Search, group: str | None, log: str | None, path: Path, place: str
) -> tuple[str | None, str | None]:
    before = len(search.wrongs)
    group = search.one(LOG_GROUP, group, (*path, "group"), place)
    # Without the group, the log cannot be looked up.
    has_group = len(search.wrongs) == before
    return group, search.one(LOG, log, (*path, "log"), group or "") if has_group else log


class _Search:
    """Makes lookups one by one, and collects the problems."""

    def __init__(self) -> None:
        self.wrongs: list[Wrong] = []

    def one(self, kind: ExistingKind, text: str | None, path: Path, place: str) -> str | None:
        if text is None:
            return None
        try:
            if not is_ocid(text):
                return self._named(kind, text, path, place)
            if kind.read and getattr(kind.read(text, place), "state", None) in GONE:
                self._add(path, f"the {kind.words} {text} is deleted", "name one that exists")
        except Exception as problem:  # Pulumi raises nothing more precise for what a provider answers
            self._add(path, f"the {kind.words} `{text}`: {_answer_of_provider(problem)}", _MAY_BE_UNSEEN)
        return text

    def addresses(self, vcn: str, cidr: str) -> None:
        """Checks that the VCN has the new subnet's addresses. Otherwise OCI would refuse the subnet in the middle of an
        `up`."""
        try:
            blocks = oci.core.get_vcn(vcn_id=vcn).cidr_blocks or ()
        except Exception:  # a failed lookup was reported before
            return
        if lies_outside(cidr, blocks):
            message = f"{cidr} lies outside of the VCN's addresses: {', '.join(blocks)}"
            self._add(at("network", "subnetCidr"), message, "choose a free part of them")

    def bucket(self, name: str) -> None:
        try:
            namespace = oci.objectstorage.get_namespace().namespace
            oci.objectstorage.get_bucket(name=name, namespace=namespace)
        except Exception as problem:
            self._add(at("bucket", "existing"), f"the bucket `{name}`: {_answer_of_provider(problem)}", _MAY_BE_UNSEEN)

    def _named(self, kind: ExistingKind, name: str, path: Path, place: str) -> str:
        there = [item for item in kind.lie_in(place) if getattr(item, "state", None) not in GONE]
        same = [str(item.id) for item in there if item.display_name == name]
        if len(same) == 1:
            return same[0]
        if same:
            message = f"{len(same)} {kind.words}s are called `{name}`: {', '.join(sorted(same))}"
            self._add(path, message, "give the OCID of the one you mean")
        else:
            close = nearest_name(name, [str(item.display_name) for item in there])
            remedy = f"did you mean `{close}`?" if close else f"give an existing name, or an OCID; {_MAY_BE_UNSEEN}"
            self._add(path, f"no {kind.words} in {place} is called `{name}`", remedy)
        return name

    def _add(self, path: Path, message: str, remedy: str) -> None:
        self.wrongs.append(Wrong(path, message, remedy))


def _answer_of_provider(problem: Exception) -> str:
    answer = _ANSWER.search(str(problem))
    return answer[0].strip() if answer else str(problem).splitlines()[0]


def find_departures(plan: OciPlan) -> Iterator[Wrong]:
    """A warning for each resource with data that this `up` would delete. Raises RefusedError if the region changes."""
    before = last_outputs()
    keys = table("regions")["keys"]
    names = {key: name for name, key in keys.items()}
    for there in _regions_in_outputs(before):
        if there in (plan.region, keys.get(plan.region)):
            continue
        message = f"the stack is in {names.get(there, there)}, and OCI cannot move it to another region"
        remedy = "use that region again, and make a new stack for the other one (docs/leaving.md)"
        raise RefusedError([Wrong(("config", "oci:region"), message, remedy)])
    for look in (_departed_bucket, _departed_repository, _departed_log):
        # If a lookup is refused, nothing is reported: OCI itself will accept or refuse the change.
        yield from unless_refused(partial(look, plan, before))


def _regions_in_outputs(before: Outputs) -> Iterator[str]:
    """Each region as a name or a key. A review knows no OCIDs, but addresses of the console."""
    for address in (before.get("console") or {}).values():
        if named := str(address).partition(_IN_REGION)[2]:
            yield named
    for output in _REGIONAL:
        ocid = str(before.get(output) or "")
        if is_ocid(ocid) and (named := ocid.split(".")[3]):
            yield named


def _departed_bucket(plan: OciPlan, before: Outputs) -> Iterator[Wrong]:
    old = before.get("bucket")
    if not old or ("bucket" not in plan.taken and old == plan.bucket.name):
        return
    bucket = oci.objectstorage.get_bucket(name=old, namespace=oci.objectstorage.get_namespace().namespace)
    if not is_ours(plan, bucket.freeform_tags):
        return
    count = int(bucket.approximate_count or 0)
    # OCI updates the count only from time to time, so newer objects may be missing.
    holds = f"holds about {count_noun(count, 'object')}" if count else "holds no object that OCI has counted yet"
    fate = (
        PROTECTED
        if plan.bucket.keep
        else "Pulumi deletes it last, and OCI refuses that while it holds anything, so `up` would fail at its end. "
        "A bucket that was kept until now stays as it is, but no longer belongs to this stack"
    )
    remedy = f"to keep it, write `bucket: {{ name: {old} }}`; else copy what you need, and empty it if it should go"
    yield Wrong(at("bucket"), f"the bucket `{old}` {holds}; they are not moved. {fate}", remedy)


def _departed_repository(plan: OciPlan, before: Outputs) -> Iterator[Wrong]:
    old = str(before.get("imagePushAddress") or "").split("/", 2)[-1]
    if not old or ("registry" not in plan.taken and old == plan.registry.repository):
        return
    there = oci.artifacts.get_container_repositories(compartment_id=plan.compartment or "", display_name=old)
    for item in (item for rows in there.container_repository_collections for item in rows.items):
        if is_ours(plan, item.freeform_tags):
            fate = PROTECTED if plan.registry.keep else "OCI deletes them with it, unless it was kept until now"
            message = (
                f"the repository `{old}` holds {count_noun(item.image_count, 'image')}; they are not moved. {fate}"
            )
            remedy = f"to keep it, write `registry: {{ repository: {old} }}`; else push the images of the jobs again"
            yield Wrong(at("registry"), message, remedy)


def _departed_log(plan: OciPlan, before: Outputs) -> Iterator[Wrong]:
    group, old = before.get("logGroupId"), before.get("logId")
    if plan.logs.create or not group or not old or old == plan.logs.log:
        return
    log = oci.logging.get_log(log_group_id=group, log_id=old)
    if is_ours(plan, log.freeform_tags):
        message = f"the log `{log.display_name}` is deleted, with everything that runs printed"
        yield Wrong(at("logs"), message, "first copy what you need (`trainyard runs logs`)")
