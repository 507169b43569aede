# SPDX-License-Identifier: Apache-2.0
"""A team's stack file as the local cloud can take it: what lies elsewhere gets a stand-in, and each is told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.plan.model import Plan
from localcloud.control import Cloud
from localstacks.images import untrained
from localstacks.stand_ins.resources import KINDS, StandIns
from schemas.names import is_ocid

Config = dict[str, Any]
# What says who calls a real cloud, and where it is; the local one is told by the environment.
PROVIDER = "oci:"
REGION = "oci:region"
# The kinds that a file may name by their names, and where; what lies in another comes after it.
NAMED = (
    ("vcn", "trainyard:network", "vcn"),
    ("routetable", "trainyard:network", "routeTable"),
    ("subnet", "trainyard:network", "subnet"),
    ("loggroup", "trainyard:logs", "existing", "group"),
    ("log", "trainyard:logs", "existing", "log"),
    ("datascienceproject", "trainyard:project", "existing"),
)


@dataclass
class LocalFile:
    """The configuration to use, its secrets apart, and what a person should know of the difference."""

    config: Config
    secrets: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def localized(written: Mapping[str, Any], plan: Plan, cloud: Cloud, stand_ins: StandIns, stacks: Path) -> LocalFile:
    """The configuration of a stack file for this cloud. What stands in for others is made on the way."""
    made = LocalFile({key: deepcopy(value) for key, value in written.items() if not key.startswith(PROVIDER)})
    _region(made, str(written.get(REGION, "")), cloud)
    _domain(made)
    _uses(made)
    _existing(made, stand_ins)
    _inputs(made, plan, stand_ins)
    _names(made, stand_ins)
    _ocids(made, stand_ins)
    _secrets(made)
    _runs(made, plan, stacks)
    return made


def _region(made: LocalFile, region: str, cloud: Cloud) -> None:
    made.config = {REGION: cloud.region, **made.config}
    if region != cloud.region:
        made.remarks.append(f"{region}: the local cloud is one region, {cloud.region}")
    access = made.config.get("trainyard:access")
    if isinstance(access, dict) and "homeRegion" in access:
        access["homeRegion"] = cloud.region


def _domain(made: LocalFile) -> None:
    access = made.config.get("trainyard:access") or {}
    if access.pop("domainEndpoint", None) is not None:
        made.remarks.append(
            f"identity domain {access.pop('domain', '')}: the local cloud has one domain; groups are made there"
        )


def _uses(made: LocalFile) -> None:
    uses = made.config.get("trainyard:uses")
    if uses:
        # What a file backend calls every organization.
        uses["stack"] = f"organization/trainyard/{uses['stack'].rpartition('/')[2]}"


def _existing(made: LocalFile, stand_ins: StandIns) -> None:
    for concern, word, make in (
        ("bucket", "bucket", stand_ins.bucket),
        ("registry", "repository", stand_ins.repository),
    ):
        named = (made.config.get(f"trainyard:{concern}") or {}).get("existing")
        if named:
            make(named)
            made.remarks.append(f"{word} {named}: an empty one stands in")


def _inputs(made: LocalFile, plan: Plan, stand_ins: StandIns) -> None:
    """Buckets of others that jobs mount have to be there, as no node starts without them."""
    named = (item.bucket for job in plan.jobs.values() for item in job.inputs)
    for name in dict.fromkeys(name for name in named if name and name != plan.bucket.name):
        if stand_ins.bucket(name):
            made.remarks.append(f"bucket {name}: an empty one stands in")


def _names(made: LocalFile, stand_ins: StandIns) -> None:
    """What is named by its name, and is not in this cloud, is there under that name afterwards."""
    for kind, *path in NAMED:
        holder: Any = made.config
        for step in path[:-1]:
            holder = (holder.get(step) if isinstance(holder, dict) else None) or {}
        name = holder.get(path[-1]) if isinstance(holder, dict) else None
        if isinstance(name, str) and not is_ocid(name):
            # A log is looked for in its group, which came before it.
            group = str(holder.get("group", "")) if kind == "log" else ""
            if stand_ins.named(kind, name, stand_ins.of(group) or group):
                made.remarks.append(f"{KINDS[kind].words} {name}: an empty one stands in")


def _ocids(made: LocalFile, stand_ins: StandIns) -> None:
    stood: dict[str, str] = {}
    # A subnet's VCN and a log's group before what lies in them: in the order of the table, not of the file.
    ocids = {text for _, text in _texts(made.config) if is_ocid(text)}
    order = list(KINDS)
    for ocid in sorted(ocids, key=lambda one: (order.index(_type(one)) if _type(one) in KINDS else 0, one)):
        local = stand_ins.of(ocid)
        if local is not None and local != ocid:
            stood[ocid] = local
    made.config = _replaced(made.config, stood)
    words = [KINDS[_type(ocid)].words for ocid in stood if _type(ocid) in KINDS]
    if words:
        made.remarks.append(f"{', '.join(dict.fromkeys(words))}: the file names existing ones; empty ones stand in")


def _secrets(made: LocalFile) -> None:
    for path, _ in list(_secure(made.config)):
        *parents, last = path
        holder: Any = made.config
        for step in parents:
            holder = holder[step]
        stand_in = f"stand-in-{hashlib.sha256(repr(path).encode()).hexdigest()[:16]}"
        made.secrets[_pulumi_path(path)] = stand_in
        # Pulumi sets what is there; a list keeps its place.
        holder[last] = stand_in
    if made.secrets:
        count = len(made.secrets)
        made.remarks.append(
            f"{count} secret{'' if count == 1 else 's'} of the file: stand-ins, for only the stack's own key opens them"
        )


def _runs(made: LocalFile, plan: Plan, stacks: Path) -> None:
    known = plan.access.create or "access" in plan.taken
    elsewhere = "" if known else "its access is made elsewhere (`trainyard rehearse` makes stand-ins for that too)"
    for name, job in plan.jobs.items():
        reason = untrained(job, stacks) or elsewhere
        if not reason or not job.runs:
            continue
        runs = made.config["trainyard:jobs"][name]["runs"]
        for key in runs:
            runs[key] = {**(runs[key] or {}), "until": "accepted"}
        made.remarks.append(f"job {name}: its runs are accepted and no more, for {reason}")


def _type(ocid: str) -> str:
    return ocid.split(".")[1]


def _texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _texts(item, (*path, key))


def _replaced(value: Any, by: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return by.get(value, value)
    if isinstance(value, dict):
        return {key: _replaced(item, by) for key, item in value.items()}
    return [_replaced(item, by) for item in value] if isinstance(value, list) else value


def _secure(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, dict) and set(value) == {"secure"} and isinstance(value["secure"], str):
        yield path, value["secure"]
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _secure(item, (*path, key))


def _pulumi_path(path: tuple[Any, ...]) -> str:
    first, *rest = path
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f'["{step}"]' for step in rest)
