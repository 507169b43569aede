# SPDX-License-Identifier: Apache-2.0
"""OCI's types of resources, as states and people call them, and how other stacks name what is of such a type."""

from __future__ import annotations

import re

from localstacks.states import Row, State, name_of
from schemas.oci.ocids import is_ocid

BUCKET = "oci:ObjectStorage/bucket:Bucket"
REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
DYNAMIC_GROUP = "oci:Identity/dynamicGroup:DynamicGroup"
JOB = "oci:DataScience/job:Job"
LOG = "oci:Logging/log:Log"
# Where a type's own name is not what people call it.
_WORDS = {REPOSITORY: "repository", "oci:Core/vcn:Vcn": "VCN"}
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")
# What other stacks name by its name rather than by its OCID, and the output that shows it.
_NAMED = {BUCKET: "bucket", REPOSITORY: "imagePushAddress", DYNAMIC_GROUP: "runsGroup"}


def describe_resource(row: Row) -> str:
    """`security list demo-local-nodes`."""
    kind = _WORDS.get(row["type"]) or _HUMPS.sub(" ", row["type"].rpartition(":")[2]).lower()
    return f"{kind} {name_of(row)}"


def is_named(row: Row, by: State, inputs: str) -> bool:
    """Whether a stack names the resource: by its OCID in `inputs`, all of its resources' as text, or in an output."""
    if is_ocid(row["id"]) and row["id"] in inputs:
        return True
    outputs = by.outputs() if any(by.made()) else {}
    output = str(outputs.get(_NAMED.get(row["type"], ""), ""))
    # An address of images is host, namespace and repository.
    return (output.split("/", 2)[-1] if row["type"] == REPOSITORY else output) == name_of(row)
