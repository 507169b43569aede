# SPDX-License-Identifier: Apache-2.0
"""Finds what the stack made and its file no longer asks for, and warns about its contents before anything happens.

A program cannot read its own state. The outputs of the last `up` give the names of things, and tags their owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pulumi_oci as oci

from catalog.tables import table
from components.oci.ocids import is_ocid
from components.oci.plan import OciPlan
from components.outputs import PROTECTED, Outputs, is_ours, last_outputs, unless_refused
from components.refusal import RefusedError
from schemas.checks.registry import Wrong, at
from schemas.names import plural

# Outputs whose OCIDs contain the stack's region.
_REGIONAL = ("projectId", "subnetId", "logGroupId")


def find_departures(plan: OciPlan) -> Iterator[Wrong]:
    """A warning for each thing with contents that this `up` would give up. Raises RefusedError for another region."""
    before = last_outputs()
    _require_same_region(plan, before)
    for look in (_bucket, _repository, _log):
        # If a look-up is refused, OCI's own answer to the change is enough.
        yield from unless_refused(partial(look, plan, before))


def _require_same_region(plan: OciPlan, before: Outputs) -> None:
    keys = table("regions")["keys"]
    names = {key: name for name, key in keys.items()}
    for output in _REGIONAL:
        ocid = str(before.get(output) or "")
        if not is_ocid(ocid) or not (there := ocid.split(".")[3]) or there in (plan.region, keys.get(plan.region)):
            continue
        message = f"the stack is in {names.get(there, there)}, and OCI cannot move it to another region"
        remedy = "use that region again, and make a new stack for the other one (docs/leaving.md)"
        raise RefusedError([Wrong(("config", "oci:region"), message, remedy)])


def _bucket(plan: OciPlan, before: Outputs) -> Iterator[Wrong]:
    old = before.get("bucket")
    if not old or ("bucket" not in plan.taken and old == plan.bucket.name):
        return
    bucket = oci.objectstorage.get_bucket(name=old, namespace=oci.objectstorage.get_namespace().namespace)
    if not is_ours(plan, bucket.freeform_tags):
        return
    count = int(bucket.approximate_count or 0)
    # OCI counts only from time to time. Newer objects are not included.
    holds = f"holds about {plural(count, 'object')}" if count else "holds no object that OCI has counted yet"
    fate = (
        PROTECTED
        if plan.bucket.keep
        else "Pulumi deletes it last, and OCI refuses that while it holds anything, so `up` would fail at its end. "
        "A bucket that was kept until now stays as it is, but no longer belongs to this stack"
    )
    remedy = f"to keep it, write `bucket: {{ name: {old} }}`; else copy what you need, and empty it if it should go"
    yield Wrong(at("bucket"), f"the bucket `{old}` {holds}; nothing moves them. {fate}", remedy)


def _repository(plan: OciPlan, before: Outputs) -> Iterator[Wrong]:
    old = str(before.get("imagePushAddress") or "").split("/", 2)[-1]
    if not old or ("registry" not in plan.taken and old == plan.registry.repository):
        return
    there = oci.artifacts.get_container_repositories(compartment_id=plan.compartment or "", display_name=old)
    for item in (item for rows in there.container_repository_collections for item in rows.items):
        if is_ours(plan, item.freeform_tags):
            fate = PROTECTED if plan.registry.keep else "OCI deletes them with it, unless it was kept until now"
            message = f"the repository `{old}` holds {plural(item.image_count, 'image')}; nothing moves them. {fate}"
            remedy = f"to keep it, write `registry: {{ repository: {old} }}`; else push the images of the jobs again"
            yield Wrong(at("registry"), message, remedy)


def _log(plan: OciPlan, before: Outputs) -> Iterator[Wrong]:
    group, old = before.get("logGroupId"), before.get("logId")
    if plan.logs.create or not group or not old or old == plan.logs.log:
        return
    log = oci.logging.get_log(log_group_id=group, log_id=old)
    if is_ours(plan, log.freeform_tags):
        message = f"the log `{log.display_name}` is deleted, with everything that runs printed"
        yield Wrong(at("logs"), message, "first copy what you need (`trainyard runs logs`)")
