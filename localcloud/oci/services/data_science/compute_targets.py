# SPDX-License-Identifier: Apache-2.0
"""Compute targets: managed compute clusters that jobs may name. Here runs on them are carried out like all others."""

from __future__ import annotations

from localcloud.oci import limits, ocids
from localcloud.oci.kinds import Receipts, ResourceKind
from localcloud.oci.operations import ApiCall
from localcloud.oci.services.data_science.jobs import SERVICE, VERSION
from localcloud.oci.store import StoredResource
from localcloud.server.http import Json

_CONFIGURATION = "computeConfigurationDetails"
# The default of a target without a scaling policy. No document says what OCI's default is.
_ONE = {"policyType": "FIXED_SIZE", "instanceCount": 1}


def _made(call: ApiCall, body: Json) -> Json:
    configuration = {"scalingPolicy": _ONE, **body[_CONFIGURATION]}
    count = limits.machines_of(configuration)
    limits.require_nodes(call, configuration["instanceConfiguration"]["instanceShape"], count)
    return {**body, _CONFIGURATION: configuration, **_system_data(count)}


def _changed(call: ApiCall, target: StoredResource, body: Json) -> Json:
    """A change may leave out the machines or the scaling policy, which then stay as they are."""
    configuration = {**target.body[_CONFIGURATION], **body[_CONFIGURATION]}
    return {**body, _CONFIGURATION: configuration, **_system_data(limits.machines_of(configuration))}


def _system_data(count: int) -> Json:
    return {"computeTargetSystemData": {"computeType": "MANAGED_COMPUTE_CLUSTER", "currentInstanceCount": count}}


COMPUTE_TARGET = ResourceKind(
    "compute-target", "ComputeTarget", SERVICE, f"{VERSION}/computeTargets", "computeTargetId", ocids.JOB,
    ocid="datasciencecomputetarget", summary="ComputeTargetSummary", held_by=("job",),
    on_create=_made, on_update=_changed,
    receipts=Receipts("compute-target", "COMPUTE_TARGET_{verb}"),
    asynchronous=frozenset({"Create", "Update", "Delete"}),
)  # fmt: skip
