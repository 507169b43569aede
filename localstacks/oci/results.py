# SPDX-License-Identifier: Apache-2.0
"""What a run printed to its log and left in the bucket, for the account that `up` ends with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.plan.model import RunPlan
from localcloud.control import Cloud
from localstacks.oci.sessions import DEPLOYER, session_of
from provider.base.asking import Tell, call_of
from provider.base.errors import ProviderError
from provider.base.resource import Call
from provider.oci.calls import attempt
from provider.oci.job_runs import start_of
from provider.oci.logs import last_lines
from runstatus.launcher_status import shorten

# What a program writes for people to see at a glance; longer ones are only named.
RESULT = "result.json"
LONGEST_BYTES = 2000
MOST_NAMED = 20
LINES_READ = 100


def read_last_lines(cloud: Cloud, run_id: str, tell: Tell) -> list[str]:
    """The last lines of a job run, as anybody would read them; none where the stack keeps no logs."""
    call = call_of("up", tell)
    session = session_of(cloud, DEPLOYER)
    try:
        run = attempt(call, "Read the job run", lambda: session.client("data_science").get_job_run(run_id).data)
        return last_lines(session, call, run, LINES_READ, looks=1)
    except ProviderError:
        # The stack is up all the same.
        return ["(what it printed could not be read just now)"]


def list_results(
    cloud: Cloud, bucket: str, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
) -> Iterator[str]:
    """The objects that its present start has left, and what its result says; `nodes` has the main one first."""
    launch = run.nodes[0].launch if run.nodes else {}
    attempt_folder = str(launch.get("folder") or "").removeprefix("${bucket}/")
    if not attempt_folder or not bucket or not nodes:
        return
    folder = f"{attempt_folder}/{start_of(nodes[0]['id'], {})}"
    session = session_of(cloud, DEPLOYER)
    call, client, namespace = call_of("up", tell), session.client("object_storage"), cloud.namespace
    wanted = {"prefix": f"{folder}/output/", "fields": "name,size"}
    try:
        objects = attempt(
            call, "List its output", lambda: client.list_objects(namespace, bucket, **wanted).data.objects
        )
        for item in objects[:MOST_NAMED]:
            yield f"{item.name}, {item.size} bytes"
            if item.name.endswith(RESULT) and item.size <= LONGEST_BYTES:
                yield f"  {_text_of(call, client, namespace, bucket, item.name)}"
        if len(objects) > MOST_NAMED:
            yield f"and {len(objects) - MOST_NAMED} more"
    except (ProviderError, ValueError, RecursionError):
        # The stack is up all the same.
        yield "(what it left could not be read just now)"


def _text_of(call: Call, client: Any, namespace: str, bucket: str, name: str) -> str:
    content = attempt(call, "Read its result", lambda: client.get_object(namespace, bucket, name).data.content)
    return json.dumps(shorten(json.loads(content)), allow_nan=False)
