# SPDX-License-Identifier: Apache-2.0
"""Compares NCCL's network settings and network plugins in images with the network of an OCI shape.

Job runs reach each other through the subnet: the API of OCI Data Science cannot place them in a cluster network. So
trainyard sets no variables for RDMA. A team with RDMA sets them itself, and often copies them from examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table
from components.oci.stack import OciStack, rule
from schemas.checks.image_checks import image_path, images_of
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at
from schemas.model import EnvValue, Job

_DEVICES, _OFF, _PLUGIN = "NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_NET_PLUGIN"
_OF_RDMA = "NCCL_IB_"
_RDMA, _NO_PLUGIN = "RDMA", "none"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,20}")
# Only whole machines have the cards.
_VIRTUAL = "VM."


@rule("TY838", "a network that NCCL is forced to use, and that the nodes do not have")
def forced_network(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for path, variable, value in _plain_variables(name, job):
            for row in table("oci_networks")["forces"]:
                same = (variable, value.lower()) == (row["variable"], row["value"].lower())
                if same and (row["network"] != _RDMA or job.shape.name.startswith(_VIRTUAL)):
                    message = f"`{variable}: {value}` needs {row['network']}, which {job.shape.name} does not have"
                    yield Wrong(path, message, "leave it out: NCCL takes the network that it finds")


@rule("TY839", "NCCL's settings or plugins do not fit the shape's network", severity="warning")
def unfit_nccl_settings(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for path, variable, value in _plain_variables(name, job):
            problem = _problem_of_variable(job.shape.name, variable, value)
            if problem:
                yield Wrong(path, *problem)
    for image in images_of(stack):
        job = stack.jobs[image.job]
        if any(variable == _PLUGIN and value == _NO_PLUGIN for _, variable, value in _plain_variables(image.job, job)):
            continue
        for row in table("oci_networks")["brings"]:
            if re.search(row["image"], image.text):
                message = f"an image like `{image.text}` brings {row['library']} for {row['network']}, which OCI lacks"
                remedy = f"give the job `env: {{ {_PLUGIN}: {_NO_PLUGIN} }}`, or build its image (`trainyard image`)"
                yield Wrong(image_path(image), message, remedy)


def _problem_of_variable(shape: str, variable: str, value: str) -> tuple[str, str] | None:
    """The problem and its remedy."""
    if not variable.startswith(_OF_RDMA) or variable == _OFF:
        return None
    if shape.startswith(_VIRTUAL):
        return f"{shape} has no RDMA network, so `{variable}` has no effect", "leave it out: NCCL uses the subnet"
    published: Mapping[str, str] = table("oci_networks")["nccl"].get(shape, {})
    if variable not in published:
        return None
    remedy = f"Oracle publishes `{published[variable]}` for it (catalog/oci_networks.toml)"
    if variable == _DEVICES and (strange := _strange_device(value, published[variable])):
        return f"`{_DEVICES}` names {strange}, which {shape} does not use for RDMA", remedy
    if variable in table("oci_networks")["of_the_fabric"] and value != published[variable]:
        return f"`{variable}` has another value than the RDMA network of {shape}", remedy
    return None


def _strange_device(value: str, published: str) -> str:
    """The first device that is not among the published ones. A name without `=` means all devices that begin with
    it."""
    own = value.lstrip("=")
    if own.startswith("^"):
        return ""
    known = published.lstrip("=").split(",")
    for device in (one.partition(":")[0] for one in own.split(",") if one):
        fits = device in known if value.startswith("=") else any(one.startswith(device) for one in known)
        if not fits:
            # Only values that look like names of devices are printed: others may contain anything.
            return f"`{device}`" if _NAME.fullmatch(device) else "something"
    return ""


def _plain_variables(name: str, job: Job) -> Iterator[tuple[Path, str, str]]:
    """The variables of a job, its roles and its runs, each with its place. Secrets are left out."""
    places: list[tuple[Path, Mapping[str, EnvValue]]] = [(at("jobs", name, "env"), job.env)]
    owners: tuple[tuple[str, Mapping[str, Any]], ...] = (("roles", job.roles), ("runs", job.runs))
    for key, own in owners:
        places += [(at("jobs", name, key, each, "env"), row.env) for each, row in own.items()]
    for path, variables in places:
        yield from (((*path, key), key, value) for key, value in variables.items() if isinstance(value, str))
