# SPDX-License-Identifier: Apache-2.0
"""What a run printed to its log and left in the bucket, for the account that `up` ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from components.aws_dl1.client.logs import last_lines
from components.aws_dl1.client.queue import Queue
from components.aws_dl1.client.tickets import RunId
from components.aws_dl1.local.calls import ask
from components.aws_dl1.local.sessions import DEPLOYER, regions, session_of
from components.plan.model import RunPlan
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.local_cloud import LocalCloud
from components.platform.results import LINES_READ, NOT_READ, attempt_folder, named_results


def read_last_lines(cloud: LocalCloud, run_id: str, tell: Tell) -> list[str]:
    """The last lines of a node, as anybody would read them; none where the stack keeps no logs."""
    run = RunId.parse(run_id)
    if run is None:
        return []
    call, session = call_of("up", tell), session_of(cloud, DEPLOYER, regions()[0])
    try:
        ticket = Queue(session, call, run.cluster).ticket(run.number)
        return last_lines(session, call, ticket, run.node, LINES_READ, looks=1) if ticket else []
    except ProviderError:
        # The stack is up all the same.
        return [NOT_READ]


def list_results(
    cloud: LocalCloud, bucket: str, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
) -> Iterator[str]:
    """The objects that its present start has left, and what its result says; `nodes` has the main one first."""
    folder = attempt_folder(run)
    start = RunId.parse(str(nodes[0]["id"])) if nodes else None
    if not folder or not bucket or start is None:
        return
    client = session_of(cloud, DEPLOYER, regions()[0]).client("s3")
    prefix = f"{folder}/s{start.number:08}/output/"

    def listed() -> list[tuple[str, int]]:
        page = ask(tell, "List its output", partial(client.list_objects_v2, Bucket=bucket, Prefix=prefix))
        return [(item["Key"], item["Size"]) for item in page.get("Contents", ())]

    def read(name: str) -> bytes:
        get = partial(client.get_object, Bucket=bucket, Key=name)
        return bytes(ask(tell, "Read its result", get)["Body"].read())

    yield from named_results(listed, read)
