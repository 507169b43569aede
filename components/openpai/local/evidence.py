# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal left on the cluster: files on its storage, and last lines of logs."""

from __future__ import annotations

from collections.abc import Iterator

from components.openpai.local.results import output_folder
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.local_cloud import LocalCloud
from components.platform.rehearsal import Artifact
from components.platform.rehearsed_runs import People, StartedRun
from components.platform.status import RunStatus

_LAST_LINES = 12


def artifacts(cloud: LocalCloud, started: StartedRun) -> Iterator[Artifact]:
    """What the run's present start has put into its output folder."""
    output = output_folder(cloud, started.nodes[0].id, lambda line: None) if started.nodes else None
    for name, size in (output.sizes() if output else {}).items():
        yield Artifact(name, size)


def last_lines(who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
    """As the run's people read them; those of ranks that succeeded have nothing to tell."""
    call = call_of("rehearse", tell)
    for node in seen.nodes:
        if node.run.state == "SUCCEEDED":
            continue
        try:
            lines = who.session.runs.last_lines(call, node.run, _LAST_LINES)
        except ProviderError as refused:
            lines = [refused.cause]
        yield from (f"[{node.rank} {node.run.name}] {line}" for line in lines)
