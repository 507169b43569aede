# SPDX-License-Identifier: Apache-2.0
"""What a run printed to its log and left in the bucket, for the account that `up` ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.oci.client.calls import attempt
from components.oci.client.job_runs import start_of
from components.oci.client.logs import last_lines
from components.oci.local.sessions import DEPLOYER, session_of
from components.plan.model import RunPlan
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.local_cloud import LocalCloud
from components.platform.results import LINES_READ, NOT_READ, attempt_folder, named_results


def read_last_lines(cloud: LocalCloud, run_id: str, tell: Tell) -> list[str]:
    """The last lines of a job run, as anybody would read them; none where the stack keeps no logs."""
    call = call_of("up", tell)
    session = session_of(cloud, DEPLOYER)
    try:
        run = attempt(call, "Read the job run", lambda: session.client("data_science").get_job_run(run_id).data)
        return last_lines(session, call, run, LINES_READ, looks=1)
    except ProviderError:
        # The stack is up all the same.
        return [NOT_READ]


def list_results(
    cloud: LocalCloud, bucket: str, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
) -> Iterator[str]:
    """The objects that its present start has left, and what its result says; `nodes` has the main one first."""
    folder = attempt_folder(run)
    if not folder or not bucket or not nodes:
        return
    session = session_of(cloud, DEPLOYER)
    call, client, namespace = call_of("up", tell), session.client("object_storage"), cloud.namespace
    wanted = {"prefix": f"{folder}/{start_of(nodes[0]['id'], {})}/output/", "fields": "name,size"}

    def listed() -> list[tuple[str, int]]:
        listing = attempt(call, "List its output", lambda: client.list_objects(namespace, bucket, **wanted).data)
        return [(item.name, item.size) for item in listing.objects]

    def read(name: str) -> bytes:
        return bytes(attempt(call, "Read its result", lambda: client.get_object(namespace, bucket, name).data.content))

    yield from named_results(listed, read)
