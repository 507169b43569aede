# SPDX-License-Identifier: Apache-2.0
"""OCI's types of resources, as states and people call them, and how other stacks name what is of such a type."""

from __future__ import annotations

import re

from components.oci.ocids import is_ocid
from components.oci.registry import registry_host
from components.platform.states import Row, State, has_address, name_of

BUCKET = "oci:ObjectStorage/bucket:Bucket"
REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
DYNAMIC_GROUP = "oci:Identity/dynamicGroup:DynamicGroup"
JOB = "oci:DataScience/job:Job"
LOG = "oci:Logging/log:Log"
# Where a type's own name is not what people call it.
_WORDS = {REPOSITORY: "repository", "oci:Core/vcn:Vcn": "VCN"}
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def describe_resource(row: Row) -> str:
    """`security list demo-local-nodes`."""
    kind = _WORDS.get(row["type"]) or _HUMPS.sub(" ", row["type"].rpartition(":")[2]).lower()
    return f"{kind} {name_of(row)}"


def is_named(row: Row, own: State, by: State, inputs: str) -> bool:
    """Whether a stack names the resource: by its OCID or address in `inputs`, all of its resources' as text, or in an
    output."""
    if is_ocid(row["id"]) and row["id"] in inputs:
        return True
    outputs = by.outputs() if by.provider("oci") and any(by.made()) else {}
    # A tenancy has no other dynamic group of this name. What else has a name has an address that no other cloud has.
    if row["type"] == DYNAMIC_GROUP:
        return bool(outputs.get("runsGroup") == name_of(row))
    address = _address(row, own)
    return bool(address) and (
        has_address(inputs, address) or address in (outputs.get("bucketUri"), outputs.get("imagePushAddress"))
    )


def _address(row: Row, own: State) -> str:
    """By what other stacks name the resource, if not by its OCID."""
    values = row.get("outputs") or row.get("inputs") or {}
    namespace, provider = str(values.get("namespace", "")), own.provider("oci") or {}
    if row["type"] == BUCKET:
        return f"oci://{name_of(row)}@{namespace}"
    region = str((provider.get("inputs") or {}).get("region", ""))
    return f"{registry_host(region)}/{namespace}/{name_of(row)}" if row["type"] == REPOSITORY else ""
