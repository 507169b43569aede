# SPDX-License-Identifier: Apache-2.0
"""OCI for stacks on the local cloud: its only region and domain, stand-ins for existing resources that a file names,
and what is lost when a stack is removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.nested import map_values, walk_texts
from components.oci.local import removal
from components.oci.local.removal import RemovalReader, empty_buckets, end_other_runs, list_results
from components.oci.local.stand_ins import KINDS, StandIns
from components.oci.plan import oci_plan, registry_host
from components.oci.stack import is_ocid
from components.plan.model import Plan, RunPlan, expand_references
from components.platform.calls import LocalCloud, Tell
from components.platform.local import LocalFile, LocalPlatform, Outputs, Removal, Row, State
from localcloud import admin
from schemas.name_suggestions import count_noun

# Provider settings with credentials and region of a real tenancy. For the local cloud, the environment has them.
PROVIDER = "oci:"
REGION = "oci:region"
TARGETS = "trainyard:computeTargets"
# The kinds that a file may refer to by name, and the keys. A kind comes after the one that contains it.
NAMED = (
    ("vcn", "trainyard:network", "vcn"),
    ("routetable", "trainyard:network", "routeTable"),
    ("subnet", "trainyard:network", "subnet"),
    ("loggroup", "trainyard:logs", "existing", "group"),
    ("log", "trainyard:logs", "existing", "log"),
    ("datascienceproject", "trainyard:project", "existing"),
)


class OciLocalPlatform(LocalPlatform):
    job_type = "trainyard:oci:Job"
    client = "the OCI CLI"
    shown_outputs: tuple[tuple[str, str], ...] = (
        ("bucketUri", "bucket"),
        ("imagePushAddress", "images"),
        ("subnetId", "subnet"),
    )

    def lost_with_job(self, runs: int) -> str:
        return f"OCI deletes the job with the records of its {count_noun(runs, 'run')}"

    def describe_resource(self, row: Row) -> str:
        return removal.describe_resource(row)

    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        return removal.is_named(row, own, by, inputs)

    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        stand_in(made, plan, cloud, StandIns(cloud, tell, oci_plan(plan).network))

    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        data = RemovalReader(cloud, tell)
        StandIns(cloud, tell).remove(lambda kind, name: kind == "bucket" and not with_data and data.has_objects(name))

    def ready_images(self, cloud: LocalCloud, plan: Plan, borrowed: str) -> None:
        ready_images(cloud, plan, borrowed)

    def list_results(
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
    ) -> Iterator[str]:
        return list_results(cloud, str(outputs.get("bucket", "")), run, nodes, tell)

    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        return RemovalReader(cloud, tell).describe_removal(rows, kept)

    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        return list(RemovalReader(cloud, tell).list_data())

    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        end_other_runs(cloud, rows, tell)

    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        return empty_buckets(cloud, rows, tell)


def stand_in(made: LocalFile, plan: Plan, cloud: LocalCloud, stand_ins: StandIns) -> None:
    """Makes stand-ins for existing resources, and changes the file so that it names them."""
    region = str(made.config.get(REGION, ""))
    rest = {key: value for key, value in made.config.items() if not key.startswith(PROVIDER)}
    made.config = {REGION: cloud.region, **rest}
    if region != cloud.region:
        made.remarks.append(f"{region}: the local cloud is one region, {cloud.region}")
    access = made.config.get("trainyard:access") or {}
    if "homeRegion" in access:
        access["homeRegion"] = cloud.region
    if access.pop("domainEndpoint", None) is not None:
        made.remarks.append(
            f"identity domain {access.pop('domain', '')}: the local cloud has one domain; groups are made there"
        )
    for concern, word, make in (
        ("bucket", "bucket", stand_ins.bucket),
        ("registry", "repository", stand_ins.repository),
    ):
        named = (made.config.get(f"trainyard:{concern}") or {}).get("existing")
        if named:
            make(named)
            made.remarks.append(f"{word} {named}: an empty one stands in")
    # Nodes do not start without the other buckets that jobs mount.
    mounted = (item.bucket for job in plan.jobs.values() for item in job.inputs)
    for bucket in dict.fromkeys(bucket for bucket in mounted if bucket and bucket != plan.bucket.name):
        if stand_ins.bucket(bucket):
            made.remarks.append(f"bucket {bucket}: an empty one stands in")
    # The file chooses the keys of compute targets.
    targets = [("datasciencecomputetarget", TARGETS, key, "existing") for key in made.config.get(TARGETS) or {}]
    for kind, *path in (*NAMED, *targets):
        holder: Any = made.config
        for step in path[:-1]:
            holder = (holder.get(step) if isinstance(holder, dict) else None) or {}
        name = holder.get(path[-1]) if isinstance(holder, dict) else None
        if isinstance(name, str) and not is_ocid(name):
            # A log is looked up in its group, which was made before it.
            group = str(holder.get("group", "")) if kind == "log" else ""
            if stand_ins.named(kind, name, stand_ins.of(group) or group):
                made.remarks.append(f"{KINDS[kind].row.words} {name}: an empty one stands in")
    stood: dict[str, str] = {}
    # In the order of the table and not of the file, so that a subnet's VCN and a log's group come first.
    ocids = {text for text in walk_texts(made.config) if is_ocid(text)}
    order = list(KINDS)
    for ocid in sorted(
        ocids, key=lambda ocid: (order.index(_type_of_ocid(ocid)) if _type_of_ocid(ocid) in KINDS else 0, ocid)
    ):
        local = stand_ins.of(ocid)
        if local is not None and local != ocid:
            stood[ocid] = local
    made.config = map_values(made.config, lambda part: stood.get(part, part) if isinstance(part, str) else part)
    words = [KINDS[_type_of_ocid(ocid)].row.words for ocid in stood if _type_of_ocid(ocid) in KINDS]
    if words:
        made.remarks.append(f"{', '.join(dict.fromkeys(words))}: the file names existing ones; empty ones stand in")


def _type_of_ocid(ocid: str) -> str:
    return ocid.split(".")[1]


def ready_images(cloud: LocalCloud, plan: Plan, borrowed: str = "") -> None:
    """Registers every image that the stack names, so that it exists as soon as its repository does. The environment
    that is used for an image is chosen when a run starts.

    `borrowed`: the address of another stack's repository, if this stack uses that.
    """
    host = f"{registry_host(cloud.region)}/{cloud.namespace}/"
    names = {"namespace": cloud.namespace, "registry": borrowed or host + plan.registry.repository}
    for image in dict.fromkeys(expand_references(job.image, names) for job in plan.jobs.values()):
        if image.startswith(host):
            admin.push_when_repository_exists(cloud, image)


LOCAL = OciLocalPlatform()
