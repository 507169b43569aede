# SPDX-License-Identifier: Apache-2.0
"""Checks of what OCI would refuse: names, tags, and OCIDs of the wrong kind, region or realm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.oci.stack import OciStack, is_ocid, rule
from schemas.checks.name_checks import OUR_TAGS
from schemas.convert import camel_case
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at
from schemas.name_suggestions import suggest_name

_BUCKET = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_.-]{1,256}")
# The address of a registry, which some people write in place of a repository's name.
_HOST = re.compile(r"[a-z0-9-]+\.ocir\.io/[^/]+/|ocir\.[a-z0-9-]+\.oci\.[a-z0-9.-]+/[^/]+/")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_SECRET_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
COMMERCIAL = "oc1"
LONGEST_NAME = 255
# OCI allows ten free-form tags on a resource. Runs have all of our tags except the last.
MOST_TAGS = 10
# Path of an OCID -> the kinds it may have.
_KINDS: tuple[tuple[Path, tuple[str, ...]], ...] = (
    (("compartment",), ("compartment", "tenancy")),
    (("tenancy",), ("tenancy",)),
    (("network", "vcn"), ("vcn",)),
    (("network", "subnet"), ("subnet",)),
    (("network", "route_table"), ("routetable",)),
    (("network", "compartment"), ("compartment", "tenancy")),
    (("network", "flow_log", "group"), ("loggroup",)),
    (("network", "flow_log", "log"), ("log",)),
    (("bucket", "key"), ("key",)),
    (("logs", "existing", "group"), ("loggroup",)),
    (("logs", "existing", "log"), ("log",)),
    (("project", "existing"), ("datascienceproject",)),
    (("vault", "vault"), ("vault",)),
    (("vault", "key"), ("key",)),
)


def _ocids_in_file(stack: OciStack) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    for keys, kinds in _KINDS:
        value: object = stack
        for key in keys:
            value = getattr(value, str(key), None)
        # Some of these keys also take a name, which has no kind and no region.
        if isinstance(value, str) and is_ocid(value):
            first, *rest = (camel_case(str(key)) for key in keys)
            yield at(first, *rest), value, kinds
    for name, job in stack.jobs.items():
        if job.code and job.code.git and job.code.git.secret and "${" not in job.code.git.secret:
            yield at("jobs", name, "code", "git", "secret"), job.code.git.secret, ("vaultsecret",)
        if job.capacity_reservation:
            yield at("jobs", name, "capacityReservation"), job.capacity_reservation, ("capacityreservation",)
    for name, target in stack.compute_targets.items():
        if target.existing and is_ocid(target.existing):
            yield at("computeTargets", name, "existing"), target.existing, ("datasciencecomputetarget",)


@rule("TY601", "a bucket name that OCI would refuse")
def refused_bucket_name(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    names: list[tuple[Path, str | None]] = [
        (at("bucket", "name"), stack.bucket.name),
        (at("bucket", "existing"), stack.bucket.existing),
    ]
    for job, spec in stack.jobs.items():
        names += [(at("jobs", job, "inputs", index, "bucket"), item.bucket) for index, item in enumerate(spec.inputs)]
    for path, name in names:
        if name is not None and not _BUCKET.fullmatch(name):
            message = f"`{name[:80]}` is not a valid bucket name"
            yield Wrong(path, message, "use up to 256 letters, digits, `-`, `_` and `.`")


@rule("TY602", "a repository name that OCI would refuse")
def refused_repository_name(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for key, name in (("repository", stack.registry.repository), ("existing", stack.registry.existing)):
        if name is None:
            continue
        if (host := _HOST.match(name)) and name != host[0]:
            message = f"`{host[0]}` is the address of the registry, which is not part of a repository name"
            yield Wrong(at("registry", key), message, f"write `{name.removeprefix(host[0])}`")
        elif len(name) > LONGEST_NAME or not _REPOSITORY.fullmatch(name):
            lower = name.lower()
            better = f"`{lower}`" if _REPOSITORY.fullmatch(lower) else "`vision/training`"
            message = f"`{name[:80]}` is not a valid repository name"
            yield Wrong(at("registry", key), message, f"use lowercase letters, digits, `-`, `_`, `.` and `/`: {better}")


@rule("TY603", "a name is longer than OCI allows")
def too_long(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.project.name is not None and len(stack.project.name) > LONGEST_NAME:
        message = f"the name has {len(stack.project.name)} characters; OCI allows {LONGEST_NAME}"
        yield Wrong(at("project", "name"), message, "choose a shorter name")


@rule("TY604", "tags that OCI would refuse")
def refused_tags(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    ours = len(OUR_TAGS) - 1
    allowed = MOST_TAGS - ours
    own = [key for key in stack.tags if key not in OUR_TAGS]
    if len(own) > allowed:
        message = f"there are {len(own)} tags; OCI allows {MOST_TAGS}, and trainyard itself sets {ours}"
        yield Wrong(at("tags"), message, f"keep {allowed} of them")
    for key, value in stack.tags.items():
        if len(key) > 100 or len(value) > 256 or key != key.strip():
            message = f"the tag `{key[:40]}` is longer than OCI allows, or its key has spaces around it"
            yield Wrong(at("tags", key), message, "use up to 100 characters for the key and up to 256 for the value")


@rule("TY607", "a log retention that OCI does not offer")
def refused_log_retention(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    days = stack.logs.retention_days
    if days not in range(30, 181, 30):
        nearest = min(range(30, 181, 30), key=lambda choice: abs(choice - days))
        message = f"OCI cannot keep logs for {days} days, only for 30, 60, 90, 120, 150 or 180"
        yield Wrong(at("logs", "retentionDays"), message, f"use {nearest}")


@rule("TY608", "an OCID of the wrong kind")
def wrong_kind(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for path, ocid, kinds in _ocids_in_file(stack):
        kind = ocid.split(".")[1]
        if kind not in kinds:
            wanted = " or ".join(kinds)
            yield Wrong(path, f"is the OCID of a {kind}; it must be of a {wanted}", f"look for ocid1.{kinds[0]}.…")


@rule("TY609", "an OCID of another region")
def wrong_region(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    key = facts.regions.get(stack.region)
    for path, ocid, _kinds in _ocids_in_file(stack):
        region = ocid.split(".")[3]
        is_region = region in facts.regions or region in facts.regions.values()
        if key and is_region and region not in (key, stack.region):
            message = f"is in the region `{region}`; the stack is in {stack.region} (`{key}`)"
            yield Wrong(path, message, f"name one in {stack.region}, or change `oci:region`")


@rule("TY610", "a region that does not exist")
def unknown_region(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    if stack.region not in facts.regions:
        close = suggest_name(stack.region, facts.regions) if len(stack.region) > 3 else ""
        remedy = close if close.startswith("did") else "use the name of a region, such as us-ashburn-1"
        yield Wrong(("config", "oci:region"), f"`{stack.region}` is not an OCI region", remedy)


@rule("TY611", "a secret name that OCI Vault would refuse")
def vault_secret(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    prefix = f"{stack.team}-{stack.environment}-"
    for name in stack.vault.secrets if stack.vault else ():
        if not _SECRET_NAME.fullmatch(name) or len(prefix + name) > LONGEST_NAME:
            message = f"`{name[:80]}` is not a valid secret name; in the vault the secret is called `{prefix}<name>`"
            remedy = f"use up to {LONGEST_NAME - len(prefix)} letters, digits, `-`, `_` and `.`"
            yield Wrong(at("vault", "secrets", name), message, remedy)


@rule("TY616", "an OCID of another realm")
def wrong_realm(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    realm = facts.realms.get(stack.region, COMMERCIAL)
    if stack.region not in facts.regions:
        return
    for path, ocid, _kinds in _ocids_in_file(stack):
        theirs = ocid.split(".")[2]
        if theirs != realm:
            message = f"is of the realm {theirs}, but {stack.region} is in {realm}: one realm cannot see the other"
            yield Wrong(path, message, f"name one in {realm}, or change `oci:region`")


@rule("TY110", "an existing VCN without the new subnet's addresses or routes")
def vcn_without_subnet(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.vcn is None or network.subnet is not None:
        return
    if network.subnet_cidr is None:
        message = "a subnet is made in the existing VCN, but its addresses are missing"
        yield Wrong(at("network", "vcn"), message, "add `subnetCidr`, a free part of the VCN's addresses")
    if network.route_table is None:
        message = "the new subnet would get the VCN's default route table, which often has no routes"
        yield Wrong(at("network", "vcn"), message, "add `routeTable`, one with a service gateway")


@rule("TY111", "a setting has no effect without an existing network", severity="warning")
def network_setting_without_effect(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.route_table and not network.vcn and not network.subnet:
        yield Wrong(at("network", "routeTable"), "has no effect without `vcn`", "remove it, or name the VCN")
    if network.compartment and not (network.vcn or network.subnet):
        message = "has no effect: it is the compartment of an existing network, and none is named"
        yield Wrong(at("network", "compartment"), message, "remove it, or name `vcn` or `subnet`")


@rule("TY115", "a flow log without a place for it")
def flow_log_without_logs(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    if stack.network.flow_log is True and not stack.logs.enabled:
        message = "the flow log is made in the stack's log group, but the stack has no logs"
        remedy = "remove `enabled: false` under `trainyard:logs`, or name a flow log: `{ group: OCID, log: OCID }`"
        yield Wrong(at("network", "flowLog"), message, remedy)


@rule("TY116", "a flow log of a subnet that somebody else made", severity="warning")
def flow_log_of_others(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    network = stack.network
    if network.flow_log is True and not stack.makes("network"):
        message = (
            "makes a flow log of a subnet of others: the deployer must be allowed to update that subnet, and the log "
            "also records the traffic of others"
        )
        remedy = "ask its owner for one, and name it: `flowLog: { group: OCID, log: OCID }`"
        yield Wrong(at("network", "flowLog"), message, remedy)
