# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal left, read from OCI's API: objects, last lines of logs, the policies in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from catalog.tables import table
from components.oci.client import logs
from components.oci.client.calls import read_if_exists
from components.oci.client.job_runs import start_of
from components.oci.iam.compartments import Compartments
from components.oci.local.grounds import OciGrounds, canonical
from components.oci.local.sessions import DEPLOYER, USER, session_of
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.local_cloud import LocalCloud
from components.platform.mutations import PolicyInForce
from components.platform.rehearsal import Artifact
from components.platform.rehearsed_runs import People, StartedRun
from components.platform.status import RunStatus

_LAST_LINES = 12
_OUTPUT = "output/"


def caller(cloud: LocalCloud) -> str:
    """The OCID of the tenancy's one plain user."""
    return str(session_of(cloud, USER).credentials["user"])


def artifacts(cloud: LocalCloud, who: People, outputs: Mapping[str, Any], started: StartedRun) -> Iterator[Artifact]:
    """What lies in the run's output folder in the bucket, as its people see it."""
    folder = str(started.run.nodes[0].launch.get("folder") or "").partition("/")[2]
    if not folder or not started.nodes:
        return
    prefix = f"{folder}/{start_of(started.nodes[0].id, {})}"
    storage, bucket = who.session.client("object_storage"), str(outputs["bucket"])
    try:
        listed = storage.list_objects(cloud.namespace, bucket, prefix=f"{prefix}/{_OUTPUT}", fields="size")
    except Exception as error:
        if getattr(error, "status", None) is None:
            raise
        return
    for one in listed.data.objects:
        yield Artifact(one.name.removeprefix(f"{prefix}/{_OUTPUT}"), int(one.size or 0))


def last_lines(who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
    """As the run's people read them; those of ranks that succeeded have nothing to tell."""
    science, call = who.session.client("data_science"), call_of("rehearse", tell)
    for node in seen.nodes:
        try:
            run = read_if_exists(call, "Read the job run", partial(science.get_job_run, node.run.id))
            lines = logs.last_lines(who.session, call, run, _LAST_LINES, looks=1) if run else []
            if run and logs.place_of(run) is None:
                lines = ["(the stack keeps no logs; with --keep, what it printed is in the cloud's folder)"]
        except ProviderError as refused:
            lines = [refused.cause]
        if node.run.state != "SUCCEEDED":
            yield from (f"[{node.rank} {node.run.name}] {line}" for line in lines)


def access_facts(cloud: LocalCloud) -> OciGrounds:
    """The policies in force, read as the deployer."""
    identity = session_of(cloud, DEPLOYER).client("identity")
    below = identity.list_compartments(cloud.tenancy).data
    places = (cloud.tenancy, cloud.compartment)
    in_force = [policy for place in places for policy in identity.list_policies(place).data]
    policies = tuple(
        PolicyInForce(policy.name, policy.compartment_id, tuple(map(canonical, policy.statements)))
        for policy in in_force
    )
    parents = {one.id: one.compartment_id for one in below}
    compartments = Compartments(cloud.tenancy, parents, {one.id: one.name for one in below})
    return OciGrounds(policies, compartments, table("regions")["keys"][cloud.region])
